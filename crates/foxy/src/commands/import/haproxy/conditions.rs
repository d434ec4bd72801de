//! Converts the conditions of HAProxy to conditions of foxy's rules. HAProxy's forms are named
//! lists (`acl`), anonymous lists in braces, `if`, `unless`, `or` and `!`.

use super::super::condition_text::{case_mark, escaped, literal_expression};
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

/// The flags before the values of a criterion, and the values.
struct CriterionFlags<'w> {
    ignore_case: bool,
    /// The method of comparison after `-m`.
    method: Option<&'w str>,
    values: &'w [String],
}

fn flags<'w>(name: &str, mut words: &'w [String]) -> Result<CriterionFlags<'w>, TermFlaw> {
    let (mut ignore_case, mut method) = (false, None);
    loop {
        words = match words {
            [flag, rest @ ..] if flag == "-i" => {
                ignore_case = true;
                rest
            }
            [flag, word, rest @ ..] if flag == "-m" => {
                method = Some(word.as_str());
                rest
            }
            [flag, path, ..] if flag == "-f" => {
                return Err(flaw(name, &format!("cannot read the values in {path}")));
            }
            [flag, values @ ..] if flag == "--" => {
                return Ok(CriterionFlags { ignore_case, method, values });
            }
            [flag, ..] if flag.starts_with('-') => {
                return Err(flaw(name, &format!("the flag {flag} has no equivalent")));
            }
            values => return Ok(CriterionFlags { ignore_case, method, values }),
        };
    }
}

/// The part of a request that a criterion compares, such as a header field, and the method of
/// comparison, such as `beg` for the beginning.
struct Criterion<'w> {
    source: &'w str,
    /// The text in parentheses, in lower case.
    argument: String,
    method: &'w str,
}

impl<'w> Criterion<'w> {
    /// Reads `hdr_beg(host)`, or `hdr(host)` with `-m beg`.
    fn of(kind: &'w str, method: Option<&'w str>) -> Self {
        const METHODS: [&str; 8] = ["beg", "dir", "dom", "end", "len", "reg", "sub", "str"];
        let (source, argument) = kind.split_once('(').unwrap_or((kind, ""));
        let argument = argument.trim_end_matches(')').to_ascii_lowercase();
        let source = source.strip_prefix("req.").unwrap_or(source);
        let named = source.rsplit_once('_').filter(|(_, method)| METHODS.contains(method));
        let (source, named) = named.map_or((source, None), |(source, it)| (source, Some(it)));
        Self { source, argument, method: method.or(named).unwrap_or("str") }
    }
}

/// Converts a criterion such as `hdr(host) -i a.example` or `path_beg /api` to a condition. `name`
/// is the name of the list (ACL), for errors.
fn criterion(name: &str, words: &[String]) -> Result<Facets, TermFlaw> {
    let (kind, rest) = words.split_first().ok_or_else(|| flaw(name, "the criterion is missing"))?;
    let CriterionFlags { ignore_case, method, values } = flags(name, rest)?;
    let sample = Criterion::of(kind, method);
    let mark = case_mark(ignore_case);
    let pattern =
        |start: &str, text: &str, end: &str| format!("{mark}{start}{}{end}", escaped(text));
    let all =
        |convert: &dyn Fn(&str) -> String| values.iter().map(|value| convert(value)).collect();
    let host = |start: &str, text: &str| {
        format!("^[a-z]+://{start}{}", literal_expression(&text.to_ascii_lowercase()))
    };
    let field = sample.argument.as_str();
    let header = |start: &str, text: &str, end: &str| {
        format!("{field}: {mark}{start}{}{end}", escaped(text))
    };
    let (key, values): (&'static str, Vec<String>) = match (sample.source, field, sample.method) {
        ("hdr", "host", "str") | ("ssl_fc_sni", "", "str") => {
            ("host", all(&|text| format!("={}", text.to_ascii_lowercase())))
        }
        ("hdr", "host", "end" | "dom") if values.iter().all(|value| value.starts_with('.')) => {
            ("host", all(&|text| format!("*{}", text.to_ascii_lowercase())))
        }
        ("hdr", "host", "beg") => ("url", all(&|text| host("", text))),
        ("hdr", "host", "sub") => ("url", all(&|text| host("[^/]*", text))),
        ("hdr", "host", "end") => ("url", all(&|text| host("[^/]*", text) + "(:[0-9]+)?/")),
        // A value of `hdr` ends at a comma, but rules compare the whole field.
        ("hdr" | "fhdr", _, "sub") => ("header", all(&|text| header("*", text, "*"))),
        ("fhdr", _, "str") => ("header", all(&|text| header("", text, ""))),
        ("fhdr", _, "beg") => ("header", all(&|text| header("", text, "*"))),
        ("fhdr", _, "end") => ("header", all(&|text| header("*", text, ""))),
        ("hdr" | "fhdr", _, "found") if values.is_empty() => ("header", vec![field.to_owned()]),
        ("path", "", "str") => ("path", all(&|text| pattern("", text, ""))),
        ("path", "", "beg") => ("path", all(&|text| pattern("", text, "*"))),
        ("path", "", "end") => ("path", all(&|text| pattern("*", text, ""))),
        ("path", "", "sub") => ("path", all(&|text| pattern("*", text, "*"))),
        ("src", "", "str") => ("client", all(&|text| text.to_owned())),
        ("method", "", "str") => ("method", all(&|text| text.to_ascii_uppercase())),
        ("ssl_fc", "", "str") => ("scheme", vec!["https".to_owned()]),
        _ => return Err(flaw(name, &format!("{kind}: no rule has this condition"))),
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
