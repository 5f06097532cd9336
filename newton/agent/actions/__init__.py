"""Calls of tools outside of Newton: who permits them, what checks them before, and what is recorded after."""
