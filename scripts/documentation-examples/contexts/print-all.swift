// BLOCK
let events = PassthroughSubject<String, Never>()
let printing = Task { await printAll(events) }
while true {
  events.send("event")
  try await Task.sleep(for: .milliseconds(10))
}
