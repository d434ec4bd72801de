//! Operators' rules: conditions on a request or response, and the effects of a match.
//!
//! For each effect, the first rule that matches and has this effect decides. A rule without the
//! effect does not stop the search. Rules about shared content (freshness, cookies, response
//! fields) may depend on the URL and on the response alone, so that every client sees the same
//! cache. [`OperatorRule::check`] refuses other rules.
//!
//! - `condition` matches a request against the conditions of a rule.
//! - `effect` lists the effects.
//! - `facts` contains what the conditions see.
//! - `index` finds the rules that may match, without a look at every rule.
//! - `limit` limits the requests and bytes of each client.
//! - `query` and `path` change the cache key and the path.
//! - `set` evaluates all rules.
//! - `url` matches the whole URL against regular expressions.

mod condition;
mod effect;
mod facts;
mod host;
mod index;
mod limit;
mod path;
mod pattern;
mod query;
mod set;
mod url;

pub use condition::{Conditions, Days, Hours, Missed, NamedPattern, PortRange};
pub use effect::{Access, Effect, Effects, FieldEdits};
pub use facts::{RequestFacts, SharedFacts};
pub use host::{HostCondition, canonical_network};
pub use limit::{Bandwidth, RequestRate};
pub use path::{Rewrite, normal_path, path_pattern};
pub use pattern::Pattern;
pub use query::QueryKey;
pub use set::{Decision, OperatorRule, OperatorRules, RuleError, Tried, serve_named_clients_alone};
pub use url::UrlPattern;
