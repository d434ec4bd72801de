//! To be opened by its first user.
