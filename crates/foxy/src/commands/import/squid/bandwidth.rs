//! Converts Squid's delay pools to rules with `bandwidth-limit`. foxy limits each client, and
//! has no limit for several clients together.

use super::super::draft::{ImportDraft, Original};
use super::super::report::ImportReason;
use super::super::terms::effect;
use super::access::{self, AccessLine};
use super::acl::SquidAcls;
use super::lines::SquidLine;
use super::{SquidImport, unreadable, values};
use std::collections::HashMap;
use toml::Value;

type Converted = Result<(), ImportReason>;

#[derive(Debug, Default)]
pub struct DelayPools {
    classes: HashMap<String, String>,
    parameters: HashMap<String, SquidLine>,
    access: Vec<(String, AccessLine)>,
}

pub fn delay_class(import: &mut SquidImport<'_>, line: &SquidLine) -> Converted {
    let [pool, class, ..] = line.arguments() else { return Err(unreadable(&line.original)) };
    import.pools.classes.insert(pool.clone(), class.clone());
    Ok(())
}

pub fn delay_parameters(import: &mut SquidImport<'_>, line: &SquidLine) -> Converted {
    let [pool, ..] = line.arguments() else { return Err(unreadable(&line.original)) };
    import.pools.parameters.insert(pool.clone(), line.clone());
    Ok(())
}

pub fn delay_access(import: &mut SquidImport<'_>, line: &SquidLine) -> Converted {
    let [pool, ..] = line.arguments() else { return Err(unreadable(&line.original)) };
    let mut words = line.words.clone();
    words.remove(1);
    let access = AccessLine::read(&SquidLine { words, original: line.original.clone() });
    let access = access.ok_or_else(|| unreadable(&line.original))?;
    import.pools.access.push((pool.clone(), access));
    Ok(())
}

impl DelayPools {
    pub fn finish(&self, draft: &mut ImportDraft, acls: &SquidAcls) {
        for (number, (pool, line)) in self.access.iter().enumerate() {
            if !line.allows() {
                continue;
            }
            let (rate, is_whole) = match self.limit(pool) {
                Ok(limit) => limit,
                Err(text) => {
                    draft.leave(line.original(), ImportReason::Opens(text.into()));
                    continue;
                }
            };
            if !is_whole {
                let text = "foxy limits each client, not several clients together";
                draft.leave(line.original(), ImportReason::Opens(text.into()));
            }
            if self.access[..number].iter().any(|(other, line)| other == pool && !line.allows()) {
                let text = "foxy also limits clients that an earlier line excludes";
                draft.leave(line.original(), ImportReason::Differs(text.into()));
            }
            add_rules(draft, acls, line, rate);
        }
    }

    /// Returns the bytes per second of each client, and whether the pool has no other limit.
    fn limit(&self, pool: &str) -> Result<(u64, bool), &'static str> {
        let class = self.classes.get(pool).map(String::as_str);
        let position = match class {
            Some("1" | "2") => 1,
            Some("3") => 2,
            _ => return Err("write a rule with `bandwidth-limit`, which limits each client"),
        };
        let line = self.parameters.get(pool).ok_or("the pool has no `delay_parameters`")?;
        let buckets = line.arguments().get(1..).unwrap_or_default();
        let rate = |text: &String| text.split('/').next()?.parse::<i64>().ok();
        let own = if class == Some("1") { buckets.first() } else { buckets.get(position) };
        let own = own.and_then(rate).and_then(|rate| u64::try_from(rate).ok());
        let own = own.filter(|rate| *rate > 0).ok_or(
            "write a rule with `bandwidth-limit`, which limits each client; the pool limits \
             several clients together",
        )?;
        let others = buckets.iter().take(position).filter(|_| class != Some("1"));
        let is_whole = class != Some("1") && others.clone().all(|text| rate(text) == Some(-1));
        Ok((own, is_whole))
    }
}

fn add_rules(draft: &mut ImportDraft, acls: &SquidAcls, line: &AccessLine, rate: u64) {
    let original: &Original = line.original();
    let expanded = match acls.expand(line.literals()) {
        Ok(expanded) => expanded,
        Err(flaw) => return draft.leave(original, ImportReason::Opens(flaw.to_string())),
    };
    for flaw in &expanded.lost {
        draft.leave(original, ImportReason::Opens(flaw.to_string()));
    }
    for (number, term) in (1..).zip(&expanded.terms) {
        let limit = Value::from(format!("{}/s", values::bytes(rate)));
        let then = effect("bandwidth-limit", limit);
        let rule = term.rule(&format!("{} {number}", access::rule_name(original)), then);
        draft.list("rule", rule, original);
    }
}
