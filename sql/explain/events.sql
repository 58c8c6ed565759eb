-- Events about some objects, as they came; the oldest first.
select b.event_id, b.type, b.scope, b.object_id, b.idempotency_key, b.via, b.status, b.deliveries,
       b.created_at, b.received_at
  from unnest(:'scopes'::text[], :'ids'::text[]) as o (scope, id)
  join tallyd.inbox b on b.scope = o.scope and b.object_id = o.id
 order by b.created_at, b.received_at, b.event_id
 limit :'limit'
