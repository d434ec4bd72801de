//! Tests the maps of a store: order of the cells, shades, free chunks, and size of the SVG.

use super::*;
use crate::Place;

fn provenance() -> Provenance {
    Provenance {
        source: "001 Fig 13".into(),
        place: Place::Simulated,
        scale: 1.0,
        quick: false,
        seeds: 1,
    }
}

fn map(shading: Shading, states: Vec<MapState>) -> Map {
    Map { title: "Slots".into(), provenance: provenance(), shading, slot_bytes: 512, states }
}

fn state(runs: &[(u64, Content)]) -> MapState {
    let mut state = MapState::new("after the run");
    for &(slots, content) in runs {
        state.push(slots, content);
    }
    state
}

#[test]
fn the_store_begins_lower_left_and_runs_up_column_by_column() {
    let state = state(&[(2, Content::Live(0)), (5, Content::Free), (2, Content::Live(0))]);
    let svg = map(Shading::Fullness, vec![state]).svg();
    assert!(svg.contains(r#"viewBox="0 0 3 3""#), "{svg}");
    assert!(svg.contains(r#"<path class="fx-cell fx-m5" d="M0.5 3v-2M2.5 2v-2"/>"#), "{svg}");
}

#[test]
fn cells_of_many_slots_show_how_full_they_are() {
    let grid = Grid { slots_per_cell: 4, rows: 2, columns: 1 };
    let state = state(&[(1, Content::Free), (3, Content::Live(0)), (4, Content::Live(1))]);
    let cells = cells(&state, grid);
    let shades: Vec<_> = cells.iter().map(|cell| cell.class(Shading::Fullness)).collect();
    assert_eq!(shades, [Some("fx-m4".to_string()), Some("fx-m5".to_string())]);
}

#[test]
fn age_shades_from_newest_to_oldest_and_less_than_half_live_is_free() {
    let class = |runs: &[(u64, Content)]| {
        let mut cell = Cell::default();
        runs.iter().for_each(|&(slots, content)| cell.add(slots, content));
        cell.class(Shading::Age(100))
    };
    assert_eq!(class(&[(4, Content::Live(0))]).as_deref(), Some("fx-m5"));
    assert_eq!(class(&[(4, Content::Live(50))]).as_deref(), Some("fx-m3"));
    assert_eq!(class(&[(4, Content::Live(100))]).as_deref(), Some("fx-m1"));
    assert_eq!(class(&[(1, Content::Live(0)), (3, Content::Free)]), None);
}

#[test]
fn a_cell_has_the_colour_of_the_site_most_of_it_belongs_to() {
    let mut cell = Cell::default();
    cell.add(1, Content::Live(2));
    cell.add(5, Content::Live(11));
    cell.add(2, Content::Live(4));
    assert_eq!(cell.class(Shading::Site), Some(colour(3)));
}

#[test]
fn neighbours_of_one_content_are_one_free_chunk() {
    let state =
        state(&[(3, Content::Free), (1, Content::Free), (2, Content::Live(0)), (2, Content::Free)]);
    assert_eq!(state.free_chunks().collect::<Vec<_>>(), [4, 2]);
    let facts = map(Shading::Fullness, Vec::new()).facts(&state);
    assert_eq!(facts, ["25 % live of 4 KiB", "2 free chunks, mean 1.5 KiB, largest 2 KiB"]);
}

#[test]
fn a_map_of_nothing_is_still_a_picture() {
    assert!(map(Shading::Site, vec![MapState::new("empty")]).svg().contains("0 % live of 0 B"));
    assert!(map(Shading::Age(0), Vec::new()).svg().ends_with("</svg>\n"));
}

#[test]
fn a_store_of_millions_of_slots_stays_a_small_picture() {
    let mut random = 1_u64;
    let mut full = MapState::new("without locality buffers");
    for _ in 0..400_000 {
        let bits = foxy_base::random::split_mix(&mut random);
        full.push(bits % 20, if bits >> 63 == 0 { Content::Free } else { Content::Live(0) });
    }
    let svg = map(Shading::Fullness, vec![full]).svg();
    assert!(svg.len() < 400_000, "{} bytes", svg.len());
}

#[test]
fn shades_without_names_stand_close_together() {
    let svg = map(Shading::Age(9), vec![state(&[(4, Content::Live(9))])]).svg();
    assert_eq!(svg.matches("class=\"fx-name\"").count(), 1);
    assert!(
        svg.contains("d=\"M24 ") && svg.contains("d=\"M38 ") && svg.contains("d=\"M80 "),
        "{svg}"
    );
}

#[test]
fn two_states_are_compared_by_their_free_chunks() {
    let first = state(&[(1, Content::Free), (1, Content::Live(0)), (1, Content::Free)]);
    let last = MapState { name: "later".into(), ..state(&[(8, Content::Free)]) };
    assert_eq!(
        map(Shading::Fullness, vec![first, last]).finding(),
        "later: 0.5 × as many free chunks as after the run, 8 × as large in the mean."
    );
}
