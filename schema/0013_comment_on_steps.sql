comment on column heart.procedures.steps is
    'The part that enters a context; of a procedure without steps, the beginning of the details does.';
