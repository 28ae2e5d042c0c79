\set n random(0, 1999)
select public.bare(:n);
