-- Shared by every pgTAP file: a frozen clock, and makers with readable defaults.
set local aivedio.now = '2026-06-24 03:10:00+00';
\ir makers.sql
