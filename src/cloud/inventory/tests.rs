//! Tests of the inventory on paused time.
