--! title: The charge is not what the row meant
--! severity: critical
--! needs: local, charges
--! advice: Compare row and charge. Refund or collect the difference, and find out who changed the amount, the currency or the payee between minting the intent and paying.
--
-- Amount, currency or payee of a successful charge differ from its row. A factor that is a power of ten
-- is named: somebody mixed major and minor units. A capture below the amount is only a remark.
with pairs as (
  select i.intent_id, i.operation_id, i.scope, i.rail, i.amount, i.currency, i.payee,
         c.charge_id, c.amount as charge_amount, c.amount_captured, c.currency as charge_currency,
         c.payee as charge_payee, c.created_at, i.asset, c.asset as charge_asset,
         -- Tokens are their contracts: two of one symbol are two currencies (case B40).
         i.currency <> c.currency or coalesce(i.asset <> c.asset, false) as other_currency,
         -- Names of the team's own say nothing about the account that was paid.
         i.payee ~* '^(acct_|0x)' and lower(i.payee) <> lower(c.payee) as other_payee,
         c.amount_captured <> i.amount as other_amount,
         c.amount = i.amount and c.amount_captured < i.amount as partial_capture,
         case when least(i.amount, c.amount_captured) > 0
              then greatest(i.amount, c.amount_captured) / least(i.amount, c.amount_captured) end as factor
    from tallyd.intent_fact i
    join tallyd.charge_fact c on c.intent_id = i.intent_id
   where i.operation_id = any (:'operations'::text[])
     and i.pays
     and c.succeeded
), found as (
  select intent_id, operation_id, scope, rail, amount, currency, payee, charge_id, amount_captured,
         charge_currency, charge_payee, created_at, asset, charge_asset, other_currency,
         coalesce(other_payee, false) as other_payee,
         other_amount, partial_capture and not other_currency and not coalesce(other_payee, false) as partial_only,
         case when other_amount and factor in (10, 100, 1000, 10000, 100000,
                1000000) then factor::bigint end as factor
    from pairs
   where other_currency
      or other_payee
      or other_amount
)
select operation_id as subject,
       operation_id,
       case when partial_only then 'info' end as severity,
       case
         when partial_only then 'partial_capture'
         when other_currency and charge_asset is not null and currency = charge_currency then 'asset'
         when other_currency then 'currency'
         when other_amount then 'amount'
         else 'payee'
       end as basis,
       rail,
       scope,
       array[intent_id] as intents,
       array[charge_id] as charges,
       case when other_currency or other_payee then amount_captured
            else abs(amount_captured - amount) end as amount_at_risk,
       charge_currency as currency,
       created_at as occurred_at,
       format('%s meant %s %s, %s took %s %s%s', intent_id, amount, upper(currency), charge_id,
              amount_captured, upper(charge_currency),
              case when factor is not null then format(' (factor %s)', factor) else '' end) as summary,
       case when factor is not null
            then 'The factor is a power of ten: somebody mixed major and minor units.' end as advice,
       jsonb_strip_nulls(jsonb_build_object(
         'intent', intent_id, 'charge', charge_id,
         'meant', jsonb_strip_nulls(jsonb_build_object('amount', amount::text, 'currency', currency, 'payee', payee,
                                                       'asset', asset)),
         'took', jsonb_strip_nulls(jsonb_build_object('amount', amount_captured::text,
                                    'currency', charge_currency, 'payee', charge_payee, 'asset', charge_asset)),
         'difference', (amount_captured - amount)::text, 'factor', factor::text)) as evidence,
       null::jsonb as look
  from found
 order by subject, charge_id
