// BLOCK
func aCountdownDeliversWhatIsRequested() {
  var received: [Int] = []
  var isFinished = false
  var subscription: (any Subscription)?
  Countdown(start: 3).subscribe(
    AnySubscriber(
      receiveSubscription: { subscription = $0 },
      receiveValue: {
        received.append($0)
        subscription?.request(.max(1))
        return .none
      },
      receiveCompletion: { _ in isFinished = true }))
  precondition(received == [])
  subscription?.request(.max(1))
  precondition(received == [3, 2, 1])
  precondition(isFinished)
}

func aCountdownFromNothingFinishesAtOnce() {
  var isFinished = false
  Countdown(start: 0).subscribe(AnySubscriber(receiveCompletion: { _ in isFinished = true }))
  precondition(isFinished)
}

func aCountdownStopsWhenItIsCancelled() {
  var received: [Int] = []
  var subscription: (any Subscription)?
  Countdown(start: 1_000_000).subscribe(
    AnySubscriber(
      receiveSubscription: { subscription = $0 },
      receiveValue: {
        received.append($0)
        if received.count == 2 { subscription?.cancel() }
        return .max(1)
      },
      receiveCompletion: { _ in preconditionFailure("completed") }))
  subscription?.request(.max(1))
  precondition(received == [1_000_000, 999_999])
}

func batchesRequestMoreWhenTheyAreHandled() {
  var demands: [Subscribers.Demand] = []
  var batches: [[Int]] = []
  let subscriber = Batches<Int, Never>(of: 2) { batches.append($0) }
  (1...5).publisher.eraseToAnyPublisher().handleEvents(receiveRequest: { demands.append($0) })
    .subscribe(subscriber)
  precondition(batches == [[1, 2], [3, 4], [5]])
  precondition(demands == [.max(2), .max(2), .max(2)])
  subscriber.cancel()
}

func pairsAndEveryOther() {
  var pairs: [[Int]] = []
  let numbers = (1...4).publisher.eraseToAnyPublisher()
  _ = numbers.pairs().sink { pairs.append([$0.0, $0.1]) }
  precondition(pairs == [[1, 2], [2, 3], [3, 4]])
  var values: [Int] = []
  EveryOther(upstream: Countdown(start: 6)).subscribe(
    AnySubscriber(
      receiveSubscription: { $0.request(.max(3)) },
      receiveValue: {
        values.append($0)
        return .none
      }))
  precondition(values == [6, 4, 2])
}

aCountdownDeliversWhatIsRequested()
aCountdownFromNothingFinishesAtOnce()
aCountdownStopsWhenItIsCancelled()
batchesRequestMoreWhenTheyAreHandled()
pairsAndEveryOther()
