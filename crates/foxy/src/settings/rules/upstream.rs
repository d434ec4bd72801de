//! Reads `upstream`, the effect of a rule that chooses where foxy sends a request.

use crate::settings::tables::Values;
use foxy_proxy::upstream::Parent;
use foxy_rules::operator::{Upstream, Ways};
use serde::Deserialize;
use std::str::FromStr;
use std::sync::Arc;

const DIRECT: &str = "direct";
const PARENTS: &str = "parents";
const ORIGIN: &str = "origin:";

enum UpstreamWord {
    Direct,
    Parents,
    Parent(Parent),
    Origin(String),
}

impl FromStr for UpstreamWord {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            DIRECT => return Ok(Self::Direct),
            PARENTS => return Ok(Self::Parents),
            _ => {}
        }
        if let Some(name) = text.strip_prefix(ORIGIN) {
            return Ok(Self::Origin(name.to_owned()));
        }
        let parent = text.contains([':', '/']).then(|| text.parse::<Parent>().ok()).flatten();
        parent.filter(|_| !text.contains('@')).map(Self::Parent).ok_or_else(|| {
            "`upstream` must be `direct`, `parents`, the URL of a parent without credentials, or \
             `origin:NAME`"
                .to_owned()
        })
    }
}

#[derive(Deserialize)]
#[serde(try_from = "Values<UpstreamWord>")]
pub struct UpstreamValue(pub Upstream);

impl TryFrom<Values<UpstreamWord>> for UpstreamValue {
    type Error = &'static str;

    fn try_from(Values(mut words): Values<UpstreamWord>) -> Result<Self, Self::Error> {
        if let [UpstreamWord::Origin(name)] = &mut words[..] {
            return Ok(Self(Upstream::Origin(std::mem::take(name))));
        }
        if words.is_empty() {
            return Err("`upstream` is empty; write `direct`, or remove `upstream`");
        }
        let mut ways = Ways::default();
        for word in words {
            match word {
                UpstreamWord::Direct => ways.direct = true,
                UpstreamWord::Parents => ways.all_parents = true,
                UpstreamWord::Parent(parent) => {
                    ways.parents.push((parent.host().to_owned(), parent.port()));
                }
                UpstreamWord::Origin(_) => {
                    return Err(
                        "`origin:NAME` must be the only value of `upstream`; remove the others",
                    );
                }
            }
        }
        Ok(Self(Upstream::Ways(Arc::new(ways))))
    }
}
