use super::*;

fn workloads() -> Workloads {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads");
    Workloads::load(&folder).expect("readable")
}

fn read(text: &str) -> Result<Measurements, String> {
    Measurements::parse(&Source::file("mine.csv", text), &workloads()).map_err(|e| e.to_string())
}

#[test]
fn a_table_names_workloads_with_settings_and_models_by_name() {
    let text = "workload,settings,model,input,batch_size,memory_bytes,measured_by\n\
                tiny,,,,,700000000,process a100\n\
                tiny,images=64,,,64,800000000,process a100\n\
                ,,timm:resnet18,3x32x32,32,826277888,nvidia-smi a100\n\
                ,,timm:resnet18,3x32x32,64,834666496,nvidia-smi a100\n";
    let all = read(text).expect("right");
    let named: Vec<(&str, &str)> = all.subjects.iter().map(|s| (s.name(), s.family.as_str())).collect();
    assert_eq!(named, [("tiny", "tiny"), ("tiny", "tiny"), ("timm:resnet18", "resnet")]);
    let batches: Vec<(usize, u64)> = all.rows.iter().map(|r| (r.subject, r.batch_size)).collect();
    assert_eq!(batches, [(0, 32), (1, 64), (2, 32), (2, 64)]);
    assert_eq!(all.measured_by, ["process a100", "nvidia-smi a100"]);
    let only = all.of("process a100").expect("there");
    assert_eq!(only.rows.len(), 2);
    assert!(only.of("nobody").expect_err("none").to_string().contains("process a100, nvidia-smi a100"));
}

#[test]
fn a_missing_column_is_named_with_the_one_that_was_meant() {
    let said = read("workload,memory_byte,measured_by\ntiny,700000000,x\n").expect_err("it lacks one");
    assert!(said.contains("mine.csv has no column `memory_bytes`"), "{said}");
    assert!(said.contains("did you mean `memory_bytes`?"), "{said}");
    let said = read("memory_bytes,measured_by\n").expect_err("nothing is named");
    assert!(said.contains("no column `workload` (or `model`)"), "{said}");
    let said = read("workload,memory_bytes,measured_by,measured_by\n").expect_err("which one");
    assert!(said.contains("`measured_by` twice"), "{said}");
    let all = read("workload,memory_bytes,measured_by,staet\ntiny,700000000,x,out-of-memory\n").expect("read");
    assert_eq!(all.warnings, ["the column `staet` is not read; did you mean `state`?"]);
}

#[test]
fn every_mistake_is_shown_at_its_line() {
    let text = "model,input,batch_size,memory_bytes,measured_by\n\
                timm:resnet18,3x32x32,32,788,x\n\
                timm:resnet18,3x32x32,0,826277888,x\n\
                timm:resnet18,,32,826277888,x\n\
                resnet18,3x32x32,32,826277888,x\n\
                timm:resnet18,3x32x32,,826277888,x\n\
                timm:resnet18,3x32x32,32,NaN,x\n\
                timm:resnet18,3x32x32,32,826277888,\n";
    insta::assert_snapshot!(read(text).expect_err("all wrong"));
}

#[test]
fn what_is_wrong_in_every_row_is_shown_of_ten() {
    let rows: String = (0..200_000).map(|_| "tinny,700000000,x\n").collect();
    let said = read(&format!("workload,memory_bytes,measured_by\n{rows}")).expect_err("no such workload");
    assert_eq!(said.matches("did you mean `tiny`?").count(), 10, "{said}");
    assert!(said.contains("more are not shown"), "{said}");
}

#[test]
fn rows_without_memory_enough_or_within_a_search_are_counted_and_not_compared() {
    let text = "workload,batch_size,memory_bytes,measured_by,state\n\
                tiny,32,700000000,x,ok\ntiny,64,41000000000,x,out-of-memory\ntiny,128,9000000000,x,search-spike\n";
    let all = read(text).expect("right");
    assert_eq!((all.rows.len(), all.left_out.values().sum::<usize>()), (1, 2));
    let said = read(&text.replace("search-spike", "spike")).expect_err("unknown");
    assert!(said.contains("`state` is `spike`, not `ok`, `out-of-memory` or `search-spike`"), "{said}");
    assert!(
        read("workload,memory_bytes,measured_by,state\ntiny,700000000,x,out-of-memory\n")
            .expect_err("nothing is left")
            .contains("no row")
    );
}

#[test]
fn memory_that_shrinks_with_the_batch_is_doubted_aloud() {
    let head = "workload,batch_size,memory_bytes,measured_by\n";
    let all = read(&format!("{head}tiny,32,39955000000,x\ntiny,128,31947000000,x\n")).expect("read");
    assert!(all.warnings[0].starts_with("of a training (tiny) a larger batch took less memory"), "{:?}", all.warnings);
    let noise = read(&format!("{head}tiny,32,700000000,x\ntiny,64,699000000,x\ntiny,16,1,x\n").replace("tiny,16,1,x\n", ""))
        .expect("read");
    assert_eq!(noise.warnings, [] as [String; 0]);
}

#[test]
fn a_million_rows_are_read_into_few_subjects() {
    let mut text = String::from("workload,batch_size,memory_bytes,measured_by\n");
    for i in 0..1_000_000 {
        text += &format!("tiny,{},{},x\n", i % 512 + 1, 700_000_000 + i);
    }
    let all = read(&text).expect("right");
    assert_eq!((all.rows.len(), all.subjects.len()), (1_000_000, 1));
}

#[test]
fn the_published_jobs_are_ten_models_with_two_measurements_each() {
    let all = Measurements::published();
    assert_eq!((all.subjects.len(), all.rows.len()), (10, 60));
    assert_eq!(all.measured_by, ["carma", "thesis"]);
}
