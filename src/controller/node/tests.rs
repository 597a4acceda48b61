//! Tables of the Node controller.
