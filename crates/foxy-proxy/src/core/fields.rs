//! The codec's header list as the rules see it.

use foxy_http::Headers;
use foxy_rules::Fields;

/// A view for `foxy_rules`.
pub(crate) struct View<'a>(pub(crate) &'a Headers);

impl Fields for View<'_> {
    fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.0.get_all(name)
    }
}
