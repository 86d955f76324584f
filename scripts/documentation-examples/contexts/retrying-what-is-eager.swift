// BLOCK
var results: [Subscribers.Completion<URLError>] = []
for _ in 0..<3 {
  _ = request.sink(receiveCompletion: { results.append($0) }, receiveValue: { _ in })
}
precondition(attempts == 3)
precondition(results == [.failure(URLError(.timedOut)), .failure(URLError(.timedOut)), .finished])
