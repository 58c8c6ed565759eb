-- Every decision about an ambiguous row with its proof and its six answers, and where the row stands now.
create view tallyd.resolution_list as
select r.resolution_id,
       r.intent_id    as intent,
       r.operation_id as operation,
       r.decision,
       r.reason,
       r.from_state,
       r.to_state,
       r.charge_id    as charge,
       r.outcome,
       r.proof,
       r.contract,
       r.decided_at,
       i.state        as state_now
  from tallyd.resolution r
  left join tallyd.intent i on i.intent_id = r.intent_id;
