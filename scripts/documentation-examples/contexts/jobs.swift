import SluiceClient

let client = try await Client.connect(to: "127.0.0.1:7420")
let jobs = client.subject("jobs")
try await jobs.publish("first")
try await jobs.publish("second")
try await jobs.complete()

func work(on record: TopicRecord) async throws { print("working on \(record.string)") }

// BLOCK
