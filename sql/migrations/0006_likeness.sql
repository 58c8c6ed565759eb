-- What makes two charges look alike, as one indexed key each: without it a detector compares every charge of an
-- amount with every other of its day. Written by match alone.
alter table tallyd.charge_match add column alike_key text check (char_length(alike_key) <= 32);
alter table tallyd.charge_match add column print_key text check (char_length(print_key) <= 32);
create index charge_match_alike on tallyd.charge_match (alike_key) where alike_key is not null;
create index charge_match_print on tallyd.charge_match (print_key) where print_key is not null;

-- Charges that were placed before get their keys when they are placed again.
insert into tallyd.changed (kind, scope, id)
select 'charge', scope, charge_id
  from tallyd.charge_match
    on conflict do nothing;
