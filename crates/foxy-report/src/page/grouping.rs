//! Groups records by the names of their measures.

/// Groups values by name, in order of first occurrence.
pub(super) fn grouped<T>(named: Vec<(&str, T)>) -> Vec<(&str, Vec<T>)> {
    let mut groups: Vec<(&str, Vec<T>)> = Vec::new();
    for (name, value) in named {
        match groups.iter_mut().find(|group| group.0 == name) {
            Some(group) => group.1.push(value),
            None => groups.push((name, vec![value])),
        }
    }
    groups
}
