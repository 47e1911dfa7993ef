"""Rules about dispatch, implementations and registration (TW1xx)."""
