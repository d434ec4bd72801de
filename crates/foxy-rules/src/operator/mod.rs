//! Operators' rules: conditions on a request or response, and the effects of a match.
//!
//! For each effect, the first rule that matches and has this effect decides. A rule without the
//! effect does not stop the search. Each header field counts as an effect of its own. All clients
//! share stored responses. So rules about stored content (freshness, cookies, response fields) may
//! only depend on the URL and the response. [`OperatorRule::check`] refuses other rules.
//!
//! - `condition` has the conditions, and checks them.
//! - `effect` lists the effects.
//! - `facts` has the facts about requests and responses that conditions check.
//! - `index` finds the rules that may match, without checking every rule.
//! - `limit` limits the requests and bytes of each client.
//! - `query` and `path` change the cache key and the path.
//! - `readings` has the ways in which servers read a path.
//! - `redirect` sends clients to other URLs.
//! - `rule` has a rule and the checks that it must pass; `set` evaluates all rules.
//! - `template` splits the templates of `rewrite` and `redirect` at their variables.
//! - `upstream` has the upstreams that rules choose.
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
mod readings;
mod redirect;
mod rule;
mod set;
mod template;
mod upstream;
mod url;

pub use condition::{Conditions, Days, Hours, Missed, NamedPattern, PortRange};
pub use effect::{Access, Effect, Effects, FieldChange, FieldEdits};
pub use facts::{RequestFacts, SharedFacts};
pub use host::HostCondition;
pub use limit::{Bandwidth, RequestRate};
pub use path::{Rewrite, path_pattern};
pub use pattern::Pattern;
pub use readings::normal_path;
pub use redirect::Redirect;
pub use rule::{OperatorRule, RuleError, logins_name_clients, serve_named_clients_alone};
pub use set::{Decided, Decision, OperatorRules, Tried};
pub use upstream::{Upstream, Ways};
pub use url::UrlPattern;
