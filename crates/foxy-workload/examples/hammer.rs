//! x
use foxy_workload::trace::{Format, read};
fn main() {
    let log = std::fs::read(std::env::args().nth(1).unwrap()).unwrap();
    let mut r = foxy_base::Random::new(3);
    let mut panics = 0;
    std::panic::set_hook(Box::new(|i| eprintln!("{i}")));
    for i in 0..200000u64 {
        let mut b = log.clone();
        for _ in 0..1 + r.below(4) {
            let at = r.below(b.len() as u64) as usize;
            b[at] = r.next_u64() as u8;
        }
        let f = if i % 2 == 0 { None } else { Some(Format::Parquet) };
        if std::panic::catch_unwind(|| {
            let _ = read(&b[..], f, &mut |_| {});
        })
        .is_err()
        {
            panics += 1;
        }
    }
    println!("panics {panics}");
}
