//! Tables of the Volume controller.
