-- The ledger of decisions and what guards it.
create schema if not exists brain;
grant usage on schema brain to newton_app;
