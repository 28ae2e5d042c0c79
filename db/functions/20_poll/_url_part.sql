/*
 * Stage 20 · poll · _url_part
 *
 * Encodes a value for one part of a URL's path or query: everything but unreserved characters (RFC 3986, 2.3)
 * becomes %XX, also the slash, and the dots of a value of dots alone, so that no value can reach another path.
 *
 * Called by   _build_request, _fill_text, _read_outputs, _url_path
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._url_part(p_value text)
returns text
language plpgsql
immutable
strict
set search_path = ''
as $_url_part$
begin
  -- Most ids need nothing.
  if p_value ~ '^[A-Za-z0-9_.~-]*$' then
    return case when p_value ~ '^\.+$' then pg_catalog.repeat('%2E', pg_catalog.length(p_value)) else p_value end;
  end if;

  return (
    select pg_catalog.string_agg(
      case
        when piece.letter ~ '^[A-Za-z0-9_.~-]$' then piece.letter
        else pg_catalog.upper(
          pg_catalog.regexp_replace(
            pg_catalog.encode(pg_catalog.convert_to(piece.letter, 'UTF8'), 'hex'), '(..)', '%\1', 'g'
          )
        )
      end,
      '' order by piece.place
    )
    from pg_catalog.regexp_split_to_table(p_value, '') with ordinality as piece (letter, place)
  );
end;
$_url_part$;

comment on function aivedio._url_part is
  'Stage 20: a value encoded as one part of a URL.';
