//! Changes of JSON that keep it JSON: types swapped, keys lost, renamed and doubled, numbers beyond all bounds, depths without end.

use serde_json::{Map, Value, json};

use crate::support::random::Random;

/// A few changes at random places.
pub fn mutate(value: &mut Value, random: &mut Random) {
    for _ in 0..1 + random.below(3) {
        let nodes = count(value);
        let other = nth(value, &mut random.below(nodes)).map(|v| v.clone()).unwrap_or_default();
        let Some(node) = nth(value, &mut random.below(nodes)) else { continue };
        match random.below(6) {
            0..=2 => *node = odd(node, random),
            3 => *node = other,
            4 => lose(node, random),
            _ => double(node, random),
        }
    }
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(all) => all.iter().map(count).sum(),
        Value::Object(all) => all.values().map(count).sum(),
        _ => 0,
    }
}

/// The node that is so many after the first.
fn nth<'a>(value: &'a mut Value, left: &mut usize) -> Option<&'a mut Value> {
    if *left == 0 {
        return Some(value);
    }
    *left -= 1;
    match value {
        Value::Array(all) => all.iter_mut().find_map(|v| nth(v, left)),
        Value::Object(all) => all.values_mut().find_map(|v| nth(v, left)),
        _ => None,
    }
}

/// Something that is not what was there, or is too much of it.
fn odd(was: &Value, random: &mut Random) -> Value {
    if let (Some(n), true) = (was.as_f64(), random.uniform() < 0.5) {
        return match random.below(7) {
            0 => json!(-n),
            1 => json!(n as u64 ^ 1),
            2 => json!(n * 1e9),
            3 => json!((n as u64).wrapping_sub(1)),
            4 => json!(u64::MAX),
            5 => json!(0),
            _ => json!(u32::MAX),
        };
    }
    match random.below(19) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(-1),
        3 => json!(0),
        4 => json!(1e308),
        5 => json!(-1e308),
        6 => json!(5e-324),
        7 => json!(u64::MAX),
        8 => json!(i64::MIN),
        9 => json!(""),
        10 => json!("x".repeat(5000)),
        11 => json!("../../../evil"),
        12 => json!("\u{1b}]52;c;eA==\u{7}\n✓ </script><script>\u{202e}"),
        13 => json!([]),
        14 => json!({}),
        15 => (0..100).fold(json!(1), |inner, _| json!([inner])),
        16 => json!("2026-11-20T18:42:09Z"),
        17 => json!([null, -1, "a", {}]),
        _ => json!(0.5),
    }
}

fn lose(node: &mut Value, random: &mut Random) {
    match node {
        Value::Array(all) if !all.is_empty() => drop(all.remove(random.below(all.len()))),
        Value::Object(all) if !all.is_empty() => {
            let key = all.keys().nth(random.below(all.len())).cloned().unwrap_or_default();
            all.remove(&key);
        }
        other => *other = Value::Null,
    }
}

fn double(node: &mut Value, random: &mut Random) {
    match node {
        Value::Array(all) if !all.is_empty() => {
            let again = all[random.below(all.len())].clone();
            let at = random.below(all.len() + 1);
            all.insert(at, again);
        }
        Value::Object(all) if !all.is_empty() => {
            let (key, value) = all.iter().nth(random.below(all.len())).map(|(k, v)| (k.clone(), v.clone())).unwrap_or_default();
            all.insert(format!("{key}_"), value.clone());
            all.insert("x".repeat(random.below(200)), Value::Object(Map::from_iter([(key, value)])));
        }
        Value::String(text) => *text = text.repeat(2 + random.below(50)),
        Value::Number(n) => *node = n.as_f64().map_or(Value::Null, |n| json!(n * 2.0)),
        other => *other = json!([other.clone(), other.clone()]),
    }
}

/// The text of a value, one time in six no JSON any more: cut, with a flipped byte, bytes that are no text, a key twice, no end of
/// brackets, or numbers that no type holds.
pub fn text(value: &Value, random: &mut Random) -> Vec<u8> {
    let mut bytes = value.to_string().into_bytes();
    let at = random.below(bytes.len().max(1));
    match random.below(36) {
        0 => bytes.truncate(at),
        1 if !bytes.is_empty() => bytes[at] ^= 1 << random.below(8),
        2 => drop(bytes.splice(at..at, [0xff, 0xfe, 0xc3])),
        3 => {
            let first = bytes.iter().position(|b| *b == b',').unwrap_or(0);
            let pair = bytes[1.min(bytes.len())..first.max(1).min(bytes.len())].to_vec();
            bytes.splice(1.min(bytes.len())..1.min(bytes.len()), pair.into_iter().chain([b',']));
        }
        4 => drop(bytes.splice(at..at, std::iter::repeat_n(b'[', 100_000))),
        5 => {
            bytes = String::from_utf8_lossy(&bytes)
                .replace(":1,", ":1e999,")
                .replace(":0,", ":123456789012345678901234567890,")
                .into_bytes()
        }
        _ => {}
    }
    bytes
}
