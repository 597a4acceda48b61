//! Freehold.
