//! Reads the operator's rules: the `[[rule]]` tables of the configuration file. `keys`
//! describes the keys, and `values` parses their values.

pub mod keys;
pub mod list;
pub mod upstream;
mod values;

use crate::settings::complaint::Complaint;
use crate::settings::tables::{Parsed, Values, WrittenTable};
use foxy_base::ByteSize;
use foxy_rules::freshness::Heuristic;
use foxy_rules::operator::{
    Access, Bandwidth, Conditions, Days, Effects, FieldEdits, HostCondition, Hours, OperatorRule,
    OperatorRules, Pattern, PortRange, Redirect, RequestRate, Rewrite, RuleError, UrlPattern,
};
use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, Error, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use std::fmt;
use toml::Spanned;
use toml::de::DeValue;
use upstream::UpstreamValue;
use values::{
    ClientNetwork, Field, FieldName, FieldTable, FinalStatus, MethodName, Parameter, ParameterName,
    PathText, SchemeText, Seconds,
};

pub const RULE_KEYS: &[&str] = &["name", "when", "unless", "then"];

pub type WrittenRule = WrittenTable<OperatorRule>;

/// Reads a `[[rule]]` table. `number` is its position among these tables in the file, counted from
/// 1.
pub fn read(
    value: &Spanned<DeValue<'_>>,
    number: usize,
) -> Result<(OperatorRule, toml::Table), toml::de::Error> {
    let rule = RuleTable::deserialize(value.clone().into_deserializer())?;
    if rule.name.as_deref().is_some_and(|name| name.is_empty() || name.contains(char::is_control)) {
        return Err(toml::de::Error::custom("`name` must be one line of text"));
    }
    if matches!(rule.then.access, Some(AccessWord::Allow)) && rule.then.message.is_some() {
        return Err(toml::de::Error::custom("`message` is for refused requests; remove it"));
    }
    let rule = OperatorRule {
        name: rule.name.unwrap_or_else(|| format!("rule-{number}")),
        when: rule.when.unwrap_or_default().into(),
        unless: rule.unless.0.into_iter().map(Into::into).collect(),
        then: rule.then.into(),
    };
    Ok((rule, toml::Table::deserialize(value.clone().into_deserializer())?))
}

/// Compiles the rules. The error names the place of the first rule that is not valid.
pub fn compile(written: &[WrittenRule]) -> Result<OperatorRules, Complaint> {
    let rules = written.iter().map(|written| written.value.clone()).collect();
    OperatorRules::new(rules).map_err(|error| complaint(written, &error))
}

/// Describes why a rule is not valid. `position` is its position in the list.
pub fn complaint(written: &[WrittenRule], (position, error): &(usize, RuleError)) -> Complaint {
    let WrittenTable { value, source, .. } = &written[*position];
    let message = format!("rule `{}`: {error}", value.name);
    Complaint { message, source: Some(source.clone()) }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleTable {
    name: Option<String>,
    when: Option<ConditionTable>,
    #[serde(default)]
    unless: ExceptionTables,
    then: EffectTable,
}

/// The value of `unless`: one table of conditions, or a list of such tables.
#[derive(Default)]
struct ExceptionTables(Vec<ConditionTable>);

impl<'de> Deserialize<'de> for ExceptionTables {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ExceptionVisitor)
    }
}

struct ExceptionVisitor;

impl<'de> Visitor<'de> for ExceptionVisitor {
    type Value = ExceptionTables;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table of conditions, or a list of such tables")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ExceptionTables, A::Error> {
        let table = ConditionTable::deserialize(MapAccessDeserializer::new(map))?;
        Ok(ExceptionTables(vec![table]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<ExceptionTables, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(list)).map(ExceptionTables)
    }
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
#[serde(expecting = "a table: { path = \"/a/*\" }")]
struct ConditionTable {
    client: Values<ClientNetwork>,
    user: Values<Pattern>,
    method: Values<MethodName>,
    scheme: Values<SchemeText>,
    host: Values<HostCondition>,
    port: Values<PortRange>,
    path: Values<PathText>,
    url: Values<UrlPattern>,
    query: Values<Parameter>,
    header: Values<Field>,
    days: Values<Days>,
    hours: Option<Parsed<Hours>>,
    content_type: Values<Pattern>,
    status: Values<FinalStatus>,
    size_at_least: Option<Parsed<ByteSize>>,
    size_at_most: Option<Parsed<ByteSize>>,
}

impl From<ConditionTable> for Conditions {
    fn from(table: ConditionTable) -> Self {
        let days = table.days.0.into_iter().reduce(Days::with);
        let (least, most) = (table.size_at_least, table.size_at_most);
        let size = (least.is_some() || most.is_some())
            .then(|| least.map_or(0, |size| size.0.0)..=most.map_or(u64::MAX, |size| size.0.0));
        Self {
            clients: table.client.0.into_iter().map(|network| network.0).collect(),
            users: table.user.0,
            methods: table.method.0.into_iter().map(|method| method.0).collect(),
            schemes: table.scheme.0.into_iter().map(|scheme| scheme.0).collect(),
            hosts: table.host.0,
            ports: table.port.0,
            paths: table.path.0.into_iter().map(|path| path.0).collect(),
            urls: table.url.0,
            query: table.query.0.into_iter().map(|parameter| parameter.0).collect(),
            headers: table.header.0.into_iter().map(|field| field.0).collect(),
            days,
            hours: table.hours.map(|hours| hours.0),
            content_types: table.content_type.0,
            statuses: table.status.0.into_iter().map(|status| status.0).collect(),
            size,
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
#[serde(expecting = "a table: { access = \"deny\" }")]
struct EffectTable {
    access: Option<AccessWord>,
    message: Option<String>,
    bypass: Option<bool>,
    rewrite: Option<RewriteTable>,
    redirect: Option<RedirectTable>,
    upstream: Option<UpstreamValue>,
    login: Option<bool>,
    rate_limit: Option<Parsed<RequestRate>>,
    bandwidth_limit: Option<Parsed<Bandwidth>>,
    server_timing: Option<bool>,
    query_ignore: Option<Values<ParameterName>>,
    query_keep: Option<Values<ParameterName>>,
    query_sort: Option<bool>,
    request_header_set: Option<FieldTable>,
    request_header_remove: Option<Values<FieldName>>,
    response_header_set: Option<FieldTable>,
    response_header_remove: Option<Values<FieldName>>,
    store: Option<bool>,
    store_set_cookie: Option<bool>,
    fresh_at_least: Option<Parsed<Seconds>>,
    fresh_at_most: Option<Parsed<Seconds>>,
    heuristic: Option<HeuristicTable>,
    negative_fresh: Option<Parsed<Seconds>>,
    stale_while_revalidate: Option<Parsed<Seconds>>,
    stale_if_error: Option<Parsed<Seconds>>,
}

impl From<EffectTable> for Effects {
    fn from(table: EffectTable) -> Self {
        let seconds = |time: Option<Parsed<Seconds>>| time.map(|time| time.0.0);
        let message = table.message;
        Self {
            access: match table.access {
                None => message.map(|text| Access::Deny { message: Some(text) }),
                Some(AccessWord::Allow) => Some(Access::Allow),
                Some(AccessWord::Deny) => Some(Access::Deny { message }),
            },
            bypass: table.bypass,
            rewrite: table.rewrite.map(|rewrite| rewrite.0),
            redirect: table.redirect.map(|redirect| redirect.0),
            upstream: table.upstream.map(|upstream| upstream.0),
            login: table.login,
            rate_limit: table.rate_limit.map(|rate| rate.0),
            bandwidth_limit: table.bandwidth_limit.map(|bandwidth| bandwidth.0),
            server_timing: table.server_timing,
            query_ignore: table.query_ignore.map(patterns),
            query_keep: table.query_keep.map(patterns),
            query_sort: table.query_sort,
            request_fields: edits(table.request_header_set, table.request_header_remove),
            response_fields: edits(table.response_header_set, table.response_header_remove),
            store: table.store,
            store_set_cookie: table.store_set_cookie,
            fresh_at_least: seconds(table.fresh_at_least),
            fresh_at_most: seconds(table.fresh_at_most),
            heuristic: table.heuristic.map(|rule| Heuristic {
                at_least: rule.at_least.map_or(0, |time| time.0.0),
                percent: rule.percent,
                at_most: rule.at_most.0.0,
            }),
            negative_fresh: seconds(table.negative_fresh),
            stale_while_revalidate: seconds(table.stale_while_revalidate),
            stale_if_error: seconds(table.stale_if_error),
        }
    }
}

fn patterns(names: Values<ParameterName>) -> Vec<Pattern> {
    names.0.into_iter().map(|name| name.0).collect()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[serde(expecting = "a table: { percent = 20, at-most = \"3d\" }")]
struct HeuristicTable {
    at_least: Option<Parsed<Seconds>>,
    percent: Option<u32>,
    at_most: Parsed<Seconds>,
}

fn edits(set: Option<FieldTable>, remove: Option<Values<FieldName>>) -> Option<FieldEdits> {
    (set.is_some() || remove.is_some()).then(|| FieldEdits {
        remove: remove.unwrap_or_default().0.into_iter().map(|name| name.0).collect(),
        set: set.map(|set| set.0).unwrap_or_default(),
    })
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum AccessWord {
    Allow,
    Deny,
}

#[derive(Deserialize)]
#[serde(try_from = "RewriteText")]
struct RewriteTable(Rewrite);

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table: { from = \"/old\", to = \"/new\" }")]
struct RewriteText {
    from: String,
    to: String,
}

impl TryFrom<RewriteText> for RewriteTable {
    type Error = String;

    fn try_from(text: RewriteText) -> Result<Self, String> {
        Rewrite::new(&text.from, &text.to).map(Self)
    }
}

#[derive(Deserialize)]
#[serde(try_from = "RedirectText")]
struct RedirectTable(Redirect);

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table: { status = 301, to = \"https://a.test/\" }")]
struct RedirectText {
    status: Option<u16>,
    from: Option<String>,
    to: String,
}

impl TryFrom<RedirectText> for RedirectTable {
    type Error = String;

    fn try_from(text: RedirectText) -> Result<Self, String> {
        /// The status of a redirect without a status, as in nginx and HAProxy.
        const FOUND: u16 = 302;
        let status = text.status.unwrap_or(FOUND);
        Redirect::new(status, text.from.as_deref(), &text.to).map(Self)
    }
}

#[cfg(test)]
mod tests;
