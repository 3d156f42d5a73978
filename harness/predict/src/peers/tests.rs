use super::*;
use crate::description::FakeTensorLine;
use crate::description::tests::small;

const MIB: f64 = 1_048_576.0;

fn horus_mib(parameters: u64, activations: f64, batch: u64) -> f64 {
    let description = Description { parameters, horus_activations: activations, ..small() };
    Peer::Horus.estimate_bytes(&description, batch).unwrap() / MIB
}

/// The published column at three batch sizes is a line: its slope and intercept give the counts of each network.
#[test]
fn horus_is_what_its_column_shows() {
    // vgg16: 138,357,544 parameters, 27.1 million activations.
    assert!((horus_mib(138_357_544, 27.1e6, 32) - 21_526.0).abs() < 21_526.0 * 0.005);
    assert!((horus_mib(138_357_544, 27.1e6, 128) - 82_120.0).abs() < 82_120.0 * 0.005);
    // resnet50: 25,557,032 parameters, 31.84 million activations.
    for (batch, published) in [(32, 7_904.0), (64, 14_910.0), (128, 28_923.0)] {
        let found = horus_mib(25_557_032, 31.84e6, batch);
        assert!((found - published).abs() < published * 0.005, "{found} at {batch}");
    }
}

#[test]
fn horus_as_printed_does_not_multiply_the_weights_by_the_batch() {
    let description = Description { parameters: 1_000_000, horus_activations: 2_000.0, ..small() };
    let bytes = Peer::HorusAsPrinted.estimate_bytes(&description, 10).unwrap();
    assert_eq!(bytes, 4.0 * (10.0 * 2_000.0 + 1_000_000.0 + 10.0 * 2_000.0) + 800.0 * MIB);
}

#[test]
fn faketensor_is_the_largest_of_its_lines() {
    let line = |fixed_bytes, item_bytes| FakeTensorLine { fixed_bytes, item_bytes };
    let description = Description { fake_tensor: vec![line(1_000, 10), line(100, 40)], ..small() };
    assert_eq!(Peer::FakeTensor.estimate_bytes(&description, 1), Some(1_010.0));
    assert_eq!(Peer::FakeTensor.estimate_bytes(&description, 100), Some(4_100.0));
    let without = Description { fake_tensor: vec![], ..description };
    assert_eq!(Peer::FakeTensor.estimate_bytes(&without, 1), None);
}

/// T5-3B on one GPU, as DeepSpeed's documentation prints it: 2,851 M parameters, the largest layer 32 M; 53.22 GB for ZeRO-2, 5.31
/// GB offloaded (`deepspeed.readthedocs.io/en/latest/memory.html`).
#[test]
fn deepspeed_is_what_its_documentation_prints() {
    let description = Description { parameters: 2_851_000_000, largest_layer_parameters: 32_000_000, ..small() };
    let gib = |peer| Peer::DeepSpeed(peer).estimate_bytes(&description, 8).unwrap() / 1_073_741_824.0;
    assert!((gib(DeepSpeed::Zero2) - 53.1).abs() < 0.1, "{}", gib(DeepSpeed::Zero2));
    assert!((gib(DeepSpeed::Zero2Offloaded) - 5.31).abs() < 0.01);
    assert!((gib(DeepSpeed::Zero3) - 47.91).abs() < 0.05, "{}", gib(DeepSpeed::Zero3));
}
