//! Converts the conditions of HAProxy to conditions of foxy's rules. HAProxy's forms are named
//! lists (`acl`), anonymous lists in braces, `if`, `unless`, `or` and `!`.

use super::super::condition_text::{case_mark, escaped};
use super::super::terms::{AccessTerm, Facets, TermFlaw};
use super::lines::HaproxyLine;
use std::collections::HashMap;

/// The named lists (ACLs) of a section. A list matches a request that at least one of its `acl`
/// lines matches.
#[derive(Debug, Default)]
pub struct HaproxyAcls(HashMap<String, Vec<Result<Facets, TermFlaw>>>);

impl HaproxyAcls {
    /// Reads the `acl NAME CRITERION …` lines of a section.
    pub fn of(lines: &[HaproxyLine]) -> Self {
        let mut acls = Self::default();
        for line in lines.iter().filter(|line| line.starts(&["acl"]) && line.words.len() > 2) {
            let facets = criterion(line.argument(0), &line.words[2..]);
            acls.0.entry(line.argument(0).to_owned()).or_default().push(facets);
        }
        acls
    }

    /// Converts `if …` or `unless …`. Returns alternatives: at least one of them must hold. If
    /// `words` is empty, the only alternative always holds.
    pub fn terms(&self, words: &[String]) -> Result<Vec<AccessTerm>, TermFlaw> {
        let (is_negated, words) = match words.split_first() {
            None => return Ok(vec![AccessTerm::default()]),
            Some((first, rest)) => (first == "unless", rest),
        };
        let branches = words.split(|word| word == "or" || word == "||");
        if is_negated {
            return self.exceptions(branches);
        }
        let mut terms = Vec::new();
        for branch in branches {
            let mut open = vec![AccessTerm::default()];
            for (negated, lists) in self.literals(branch)? {
                open = narrowed(&open, negated, &lists)?;
            }
            terms.extend(open);
        }
        Ok(terms)
    }

    fn exceptions<'w>(
        &self,
        branches: impl Iterator<Item = &'w [String]>,
    ) -> Result<Vec<AccessTerm>, TermFlaw> {
        let mut term = AccessTerm::default();
        for branch in branches {
            let mut open = vec![AccessTerm::default()];
            for (negated, lists) in self.literals(branch)? {
                if negated {
                    return Err(flaw("unless", "write the rule with `if`"));
                }
                open = narrowed(&open, false, &lists)?;
            }
            term = open.iter().fold(term, |term, inner| term.and_not(&inner.when));
        }
        Ok(vec![term])
    }

    /// Returns the lists (ACLs) of a conjunction such as `a !b { path /c }`. The flag is true for a
    /// list after `!`.
    fn literals(&self, words: &[String]) -> Result<Vec<(bool, Vec<Facets>)>, TermFlaw> {
        let mut all = Vec::new();
        let mut negated = false;
        let mut at = 0;
        while at < words.len() {
            let word = words[at].as_str();
            let (mark, name) = word.strip_prefix('!').map_or((false, word), |name| (true, name));
            negated ^= mark;
            if name.is_empty() {
                at += 1;
                continue;
            }
            let lists = if name == "{" {
                let end = words[at..].iter().position(|word| word == "}");
                let end = at + end.ok_or_else(|| flaw(name, "no closing brace"))?;
                let list = criterion("{ }", &words[at + 1..end])?;
                at = end;
                vec![list]
            } else {
                let lists = self.0.get(name).ok_or_else(|| TermFlaw::Undefined(name.to_owned()))?;
                lists.iter().cloned().collect::<Result<_, _>>()?
            };
            all.push((std::mem::take(&mut negated), lists));
            at += 1;
        }
        Ok(all)
    }
}

fn narrowed(
    terms: &[AccessTerm],
    negated: bool,
    lists: &[Facets],
) -> Result<Vec<AccessTerm>, TermFlaw> {
    let mut all = Vec::new();
    for term in terms {
        if negated {
            all.push(lists.iter().fold(term.clone(), |term, facets| term.and_not(facets)));
            continue;
        }
        for facets in lists {
            let start = Some(term.clone());
            let narrowed = facets.iter().try_fold(start, |term, (key, values)| match term {
                Some(term) => term.and(key, values),
                None => Ok(None),
            });
            all.extend(narrowed?);
        }
    }
    Ok(all)
}

fn flaw(name: &str, why: &str) -> TermFlaw {
    TermFlaw::NoEquivalent { name: name.to_owned(), why: why.to_owned() }
}

/// Converts a criterion such as `hdr(host) -i a.example` or `path_beg /api` to a condition. `name`
/// is the name of the list (ACL), for errors.
fn criterion(name: &str, words: &[String]) -> Result<Facets, TermFlaw> {
    let (kind, rest) = words.split_first().ok_or_else(|| flaw(name, "the criterion is missing"))?;
    let (flags, values): (Vec<&String>, Vec<&String>) =
        rest.iter().partition(|word| word.starts_with('-'));
    let ignore_case = flags.iter().any(|flag| *flag == "-i");
    if flags.iter().any(|flag| *flag != "-i") {
        return Err(flaw(name, "this flag has no equivalent"));
    }
    let mark = case_mark(ignore_case);
    let pattern =
        |start: &str, text: &str, end: &str| format!("{mark}{start}{}{end}", escaped(text));
    let all =
        |convert: &dyn Fn(&str) -> String| values.iter().map(|value| convert(value)).collect();
    let (key, values): (&'static str, Vec<String>) = match kind.as_str() {
        "hdr(host)" | "req.hdr(host)" | "hdr(Host)" | "req.hdr(Host)" | "ssl_fc_sni" => {
            ("host", all(&|text| format!("={}", text.to_ascii_lowercase())))
        }
        "hdr_end(host)" | "hdr_dom(host)" if values.iter().all(|value| value.starts_with('.')) => {
            ("host", all(&|text| format!("*{}", text.to_ascii_lowercase())))
        }
        "path" => ("path", all(&|text| pattern("", text, ""))),
        "path_beg" => ("path", all(&|text| pattern("", text, "*"))),
        "path_end" => ("path", all(&|text| pattern("*", text, ""))),
        "path_sub" => ("path", all(&|text| pattern("*", text, "*"))),
        "src" => ("client", all(&|text| text.to_owned())),
        "method" => ("method", all(&|text| text.to_ascii_uppercase())),
        "ssl_fc" => ("scheme", vec!["https".to_owned()]),
        other => return Err(flaw(name, &format!("{other}: no rule has this condition"))),
    };
    if values.is_empty() {
        return Err(flaw(name, "the list has no value"));
    }
    Ok(Facets::from([(key, values)]))
}

#[cfg(test)]
mod tests {
    use super::super::lines::sections;
    use super::*;

    fn terms(condition: &str) -> Result<Vec<String>, TermFlaw> {
        let content = format!(
            "frontend f\nacl shop hdr(host) -i Shop.example\nacl api path_beg /api\n\
             acl api path_end .json\nacl odd rand(2) 1\nuse_backend b {condition}\n"
        );
        let section = sections(&content).remove(0);
        let words = &section.lines[4].words[2..];
        let terms = HaproxyAcls::of(&section.lines).terms(words)?;
        Ok(terms.iter().map(|term| format!("{:?} unless {:?}", term.when, term.unless)).collect())
    }

    #[test]
    fn conditions_become_terms() {
        let shown = |condition: &str| terms(condition).expect(condition).join(" | ");
        assert_eq!(shown(""), "{} unless []");
        assert_eq!(shown("if shop"), "{\"host\": [\"=shop.example\"]} unless []");
        assert_eq!(
            shown("if shop api"),
            "{\"host\": [\"=shop.example\"], \"path\": [\"/api*\"]} unless [] | \
             {\"host\": [\"=shop.example\"], \"path\": [\"*.json\"]} unless []"
        );
        assert_eq!(
            shown("if !shop or { src 10.0.0.0/8 }"),
            "{} unless [{\"host\": [\"=shop.example\"]}] | {\"client\": [\"10.0.0.0/8\"]} unless []"
        );
        assert_eq!(
            shown("unless shop or { method post }"),
            "{} unless [{\"host\": [\"=shop.example\"]}, {\"method\": [\"POST\"]}]"
        );
        assert!(terms("if odd").is_err() && terms("if absent").is_err());
        assert!(terms("unless { path_beg /a } { path_end .b }").is_err());
        assert_eq!(shown("unless shop { hdr(host) other.example }"), "{} unless []");
    }
}
