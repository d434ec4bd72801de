//! Whose word a freshness lifetime is, by name. `freshness` finds it.

/// Who says how long a response is fresh.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LifetimeSource {
    /// `s-maxage`.
    SharedMaxAge,
    /// `max-age`.
    MaxAge,
    /// Expires.
    Expires,
    /// The time since Last-Modified.
    Heuristic,
    /// The name of a package file, or one that is a digest of the content.
    Package,
    /// The operator, of an answer that says there is nothing.
    Operator,
    /// Nobody: it is never fresh.
    Nothing,
    /// A purge, which ended it earlier.
    Purge,
}

impl LifetimeSource {
    /// A stable name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SharedMaxAge => "s-maxage",
            Self::MaxAge => "max-age",
            Self::Expires => "expires",
            Self::Heuristic => "last-modified",
            Self::Package => "package-file",
            Self::Operator => "negative-lifetime",
            Self::Nothing => "nothing",
            Self::Purge => "purge",
        }
    }
}
