//! Tables of the Database controller.
