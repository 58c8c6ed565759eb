-- The candidates of one charge, strongest first. Planning the fifteen ways of the view takes ten times as long as
-- running them, so their plan is kept for the session; it is made anew when the tables' statistics are.
create function tallyd.candidates_of(of_scope text, of_charge text)
returns table (intent_id text, rule integer, basis text, created_at timestamptz, preference integer)
language plpgsql
stable
rows 2
set plan_cache_mode = force_generic_plan
as $$
begin
  return query
  select c.intent_id, c.rule, c.basis, c.created_at, c.preference
    from tallyd.charge_candidate c
   where c.scope = of_scope
     and c.charge_id = of_charge;
end
$$;
