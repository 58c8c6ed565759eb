-- The incidents of a charge are looked up in the transaction that adds thousands of others: each look-up would read
-- all of the pending list that a GIN index keeps of what is new.
alter index tallyd.incident_charges set (fastupdate = off);
