//! Tables of phases: which may follow which. The phases themselves are each scheme's own.

/// A row for each phase: the phase, and those that may follow it.
pub type Table<P> = [(P, &'static [P])];

/// Whether a table lets `next` follow `phase`.
pub fn may_become<P: PartialEq + 'static>(table: &Table<P>, phase: &P, next: &P) -> bool {
    table.iter().any(|(from, to)| from == phase && to.contains(next))
}

/// Holds that every phase has one row and that `end` can be reached from it.
#[cfg(any(test, feature = "testing"))]
pub fn check_every_phase_reaches<P: PartialEq + Copy + std::fmt::Debug + 'static>(
    table: &Table<P>,
    end: P,
) {
    for (from, _) in table {
        assert_eq!(table.iter().filter(|(other, _)| other == from).count(), 1, "{from:?}");
        let mut reached = vec![*from];
        let mut next = 0;
        while next < reached.len() {
            let row = table.iter().find(|(other, _)| *other == reached[next]);
            let (_, to) = row.expect("every phase that is reached has a row");
            let new: Vec<_> = to.iter().filter(|phase| !reached.contains(phase)).copied().collect();
            reached.extend(new);
            next += 1;
        }
        assert!(reached.contains(&end), "{from:?} does not lead to {end:?}");
    }
}
