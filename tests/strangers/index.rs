// truth(keeps): leak - 20.0M; a HashMap of what was asked, never cleared
// truth(drops): passes - 0; each answer is dropped
// pauses: 0 0.001
// needs: rustc
use std::collections::HashMap;

#[inline(never)]
fn answer(number: usize) -> Vec<u8> {
    vec![(number % 250 + 1) as u8; 20_000]
}

fn main() {
    let drops = std::env::args().nth(1).as_deref() == Some("drops");
    let pause: f64 = std::env::var("PAUSE").ok().and_then(|text| text.parse().ok()).unwrap_or(0.0);
    let mut index = HashMap::new();
    for number in 0..1000 {
        index.insert(number, answer(number));
        let pages: Vec<Vec<u8>> = (1..6).map(|k| vec![k; 15_000]).collect();
        if drops && !pages.is_empty() {
            index.remove(&number);
        }
        if pause > 0.0 {
            std::thread::sleep(std::time::Duration::from_secs_f64(pause));
        }
    }
    println!("{}", index.len());
}
