//! The integration tests: one binary, so that it is linked once.

mod cloud;
mod model_cloud;
mod world;
