-- A charge whose metadata names a row that is not there yet is kept out of other rows' operations until the grace
-- period in which its own row may arrive has passed. Written by match alone.
alter table tallyd.charge_match add column wait_until timestamptz; -- null: placed for good
create index charge_match_wait on tallyd.charge_match (wait_until) where wait_until is not null;
