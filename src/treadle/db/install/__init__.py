"""Install, upgrade and check the schema."""
