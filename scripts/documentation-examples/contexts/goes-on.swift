// BLOCK
// The program keeps running, with its subscription.
while true { try await Task.sleep(for: .seconds(60)) }
