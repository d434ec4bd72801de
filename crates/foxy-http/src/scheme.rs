//! The two schemes that HTTP is spoken under (RFC 9110 §4.2): over TCP, and over TLS.

/// A scheme.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// `http`: over TCP.
    #[default]
    Http,
    /// `https`: over TLS.
    Https,
}

impl Scheme {
    /// The scheme of this name, in any case.
    pub fn named(name: &[u8]) -> Option<Self> {
        [Self::Http, Self::Https]
            .into_iter()
            .find(|scheme| scheme.as_str().as_bytes().eq_ignore_ascii_case(name))
    }

    /// Its name, as it stands in a URL.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// The port of URLs that name none.
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}
