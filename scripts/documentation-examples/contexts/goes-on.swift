// BLOCK
// The program goes on, with its subscription.
while true { try await Task.sleep(for: .seconds(60)) }
