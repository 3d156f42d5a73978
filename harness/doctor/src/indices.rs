//! Numbers of GPUs, as people write them.

/// `GPU 7`, `GPUs 0–2 and 4–6`
pub fn gpus(indices: &[u32]) -> String {
    match indices {
        [one] => format!("GPU {one}"),
        many => format!("GPUs {}", ranges(many)),
    }
}

/// `0–2 and 4–6`, `0, 2 and 5`, for numbers in order.
pub fn ranges(numbers: &[u32]) -> String {
    let runs = numbers.chunk_by(|a, b| a + 1 == *b).flat_map(|run| match run {
        [first, .., last] if run.len() > 2 => vec![format!("{first}–{last}")],
        few => few.iter().map(u32::to_string).collect(),
    });
    let texts: Vec<String> = runs.collect();
    match texts.split_last() {
        Some((last, before)) if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        _ => texts.concat(),
    }
}
