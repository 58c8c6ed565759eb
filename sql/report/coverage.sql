-- How far each source is proven to be read within the range, and the gaps that are left.
select s.source, s.scope,
       upper(s.covered * tstzmultirange(tstzrange(null, :'to'::timestamptz))) as proven_to,
       array(select lower(r)
               from unnest(tstzmultirange(tstzrange(:'from', :'to')) - s.covered) as r
              order by r
              limit :'limit') as missing_from,
       array(select upper(r)
               from unnest(tstzmultirange(tstzrange(:'from', :'to')) - s.covered) as r
              order by r
              limit :'limit') as missing_to,
       s.failing_since, s.last_error_code
  from tallyd.source s
 order by s.source, s.scope
