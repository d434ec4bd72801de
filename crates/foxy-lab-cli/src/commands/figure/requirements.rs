//! The requirements of the papers, numbered R1 to R145. For each, the table has its state and the
//! command that shows it. Comments in the code cite these numbers.

use foxy_report::Table;

const TABLE: &str = include_str!("requirements.tsv");

/// The number of requirements.
#[cfg(test)]
const COUNT: usize = 145;

const DONE: &str = "done";
#[cfg(test)]
const STATES: [&str; 3] = [DONE, "partly", "not possible here"];

/// Returns the lines of the table, without the headings.
fn lines() -> impl Iterator<Item = Vec<&'static str>> {
    TABLE.lines().skip(1).map(|line| line.split('\t').collect())
}

/// Returns the table as text, with the number of requirements in each state.
pub fn text() -> String {
    let heads: Vec<&str> = TABLE.lines().next().unwrap_or_default().split('\t').collect();
    let mut table = Table::new(&heads);
    for line in lines() {
        table.row(&line.iter().map(ToString::to_string).collect::<Vec<_>>());
    }
    let done = lines().filter(|line| line.get(1) == Some(&DONE)).count();
    format!("{}\n{done} of {} are done\n", table.render(), lines().count())
}

/// Returns the command of each requirement.
pub fn commands() -> Vec<&'static str> {
    lines().filter_map(|line| line.get(3).copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_requirement_is_there_once_and_says_what_is_missing() {
        let numbers: Vec<String> = lines().map(|line| line[0].to_owned()).collect();
        let expected: Vec<String> = (1..=COUNT).map(|number| format!("R{number}")).collect();
        assert_eq!(numbers, expected);
        for line in lines() {
            let &[number, state, subject, command, remark] = line.as_slice() else {
                panic!("{line:?} has not five columns");
            };
            assert!(STATES.contains(&state), "{number}: {state}");
            assert!(!subject.is_empty() && !command.is_empty(), "{number}");
            assert!(state == DONE || !remark.is_empty(), "{number} does not say what is missing");
        }
        let impossible = lines().filter(|line| line[1] == STATES[2]).count();
        assert!(impossible <= 5, "{impossible} are not possible here");
    }
}
