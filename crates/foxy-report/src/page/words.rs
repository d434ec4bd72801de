//! Turns names of measures into words: `latency_p99_us` is "99th percentile of latency".

/// Words that already tell that a measure is a time. If a measure's name has such a word, the text
/// does not add the word "time".
const TIMES: [&str; 8] =
    ["latency", "time", "response", "connect", "transfer", "wait", "first byte", "wall"];

/// Returns the words for a name of a measure. The unit at the end of the name is left out.
pub(super) fn spoken(name: &str) -> String {
    let tokens: Vec<&str> = name.split(['_', ' ']).collect();
    let (mut words, mut part, mut is_time) = (Vec::new(), None, false);
    for (number, &token) in tokens.iter().enumerate() {
        let next = tokens.get(number + 1).copied();
        match token {
            "us" | "ms" | "ns" | "seconds" if next == Some("per") => words.push("time".to_owned()),
            "us" | "ms" | "ns" | "seconds" => is_time = true,
            "cpu" => words.push("CPU".into()),
            "response" if next == Some("seconds") => words.push("response time".into()),
            "mean" | "max" if part.is_none() => part = Some(token.to_owned()),
            token => match percentile(token) {
                Some(found) if part.is_none() => part = Some(found),
                _ => words.push(token.to_owned()),
            },
        }
    }
    let text = words.join(" ");
    let lacks_time = is_time && !TIMES.iter().any(|known| text.contains(known));
    match (part, lacks_time) {
        (Some(part), true) if text.is_empty() => format!("{part} time"),
        (Some(part), true) => format!("{part} time, {text}"),
        (Some(part), false) => format!("{part} {text}"),
        (None, true) => format!("{text} time"),
        (None, false) => text,
    }
}

/// Returns the words for a percentile such as `p999`.
fn percentile(token: &str) -> Option<String> {
    let digits = token.strip_prefix('p')?;
    let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    is_number.then(|| match digits {
        "50" => "median".into(),
        short if short.len() <= 2 => format!("{short}th percentile of"),
        long => format!("{}.{}th percentile of", &long[..2], &long[2..]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_measures_are_spoken() {
        let check = |name, words: &str| assert_eq!(spoken(name), words, "{name}");
        check("p999_us", "99.9th percentile of time");
        check("latency_p50_us", "median latency");
        check("latency_mean_us", "mean latency");
        check("good_user_p99_us", "99th percentile of time, good user");
        check("rule_decision_ns", "rule decision time");
        check("cpu_us_per_request", "CPU time per request");
        check("latency_difference_p50_us_to_foxy", "median latency difference to foxy");
        check("completion_seconds", "completion time");
        check("response_seconds", "response time");
        check("first_byte_p50_us", "median first byte");
        check("hit_ratio", "hit ratio");
        check("instructions: fill, 8 KB", "instructions: fill, 8 KB");
    }
}
