\set n random(0, 1999)
select applied.verdict
from public.said, aivedio.apply_observation(said.observation) as applied
where said.n = :n;
