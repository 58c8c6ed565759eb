-- The days, in the configured time zone, whose daily digest is in the outbox: one each, whichever replica writes it.
create table tallyd.daily_digest (
  day     date primary key,
  told    boolean not null,                                            -- false: tallyd was started later that day
  made_at timestamptz not null
);
