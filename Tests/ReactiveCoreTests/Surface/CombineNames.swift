/// The public names of Combine, and of what Foundation and Dispatch add to it, as far as they exist on Linux.
///
/// Each line has a type and what is declared in it or in its extensions; a line that is indented continues the one before. Names
/// that stem from a conformance, such as those of `Hashable`, are listed where the declaration is written out in the interface.
enum CombineNames {
  static let all: Set<String> = {
    var names: Set<String> = []
    var type = ""
    for line in text.split(separator: "\n") {
      var members = line[...]
      if line.first != " " {
        type = String(line.prefix { $0 != ":" })
        members = line.dropFirst(type.count + 1)
      }
      for member in members.split(separator: ",") {
        let name = member.drop { $0 == " " }
        if !name.isEmpty { names.insert(type == "top" ? String(name) : "\(type).\(name)") }
      }
    }
    return names
  }()

  private static let text = """
    top: AnyCancellable, AnyPublisher, AnySubscriber, AsyncPublisher, AsyncThrowingPublisher, Cancellable,
      CombineIdentifier, ConnectablePublisher, CurrentValueSubject, CustomCombineIdentifierConvertible, Deferred, Empty,
      Fail, Future, ImmediateScheduler, Just, ObservableObject, ObservableObjectPublisher, PassthroughSubject, Published,
      Publisher, Publishers, Record, Scheduler, SchedulerTimeIntervalConvertible, Subject, Subscriber, Subscribers,
      Subscription, Subscriptions, TopLevelDecoder, TopLevelEncoder
    AnyCancellable: ==(lhs:rhs:), cancel(), hash(into:), init(_:), store(in:)
    AnyPublisher: description, init(_:), playgroundDescription, receive(subscriber:)
    AnySubscriber: combineIdentifier, customMirror, description, init(_:),
      init(receiveSubscription:receiveValue:receiveCompletion:), playgroundDescription, receive(_:), receive(completion:),
      receive(subscription:)
    AsyncPublisher: Element, Iterator, init(_:), makeAsyncIterator()
    AsyncPublisher.Iterator: Element, next()
    AsyncThrowingPublisher: Element, Iterator, init(_:), makeAsyncIterator()
    AsyncThrowingPublisher.Iterator: Element, next()
    Cancellable: cancel(), store(in:)
    CombineIdentifier: description, init(), init(_:)
    ConnectablePublisher: autoconnect(), connect()
    CurrentValueSubject: init(_:), receive(subscriber:), send(_:), send(completion:), send(subscription:), value
    CustomCombineIdentifierConvertible: combineIdentifier
    Deferred: Failure, Output, createPublisher, init(createPublisher:), receive(subscriber:)
    DispatchQueue: SchedulerOptions, SchedulerTimeType, minimumTolerance, now,
      schedule(after:interval:tolerance:options:_:), schedule(after:tolerance:options:_:), schedule(options:_:)
    DispatchQueue.SchedulerOptions: flags, group, init(qos:flags:group:), qos
    DispatchQueue.SchedulerTimeType: <(lhs:rhs:), ==(lhs:rhs:), Stride, advanced(by:), dispatchTime, distance(to:),
      encode(to:), hash(into:), init(_:), init(from:)
    DispatchQueue.SchedulerTimeType.Stride: *(lhs:rhs:), *=(lhs:rhs:), +(lhs:rhs:), +=(lhs:rhs:), -(lhs:rhs:),
      -=(lhs:rhs:), <(lhs:rhs:), init(_:), init(exactly:), init(floatLiteral:), init(integerLiteral:), magnitude,
      microseconds(_:), milliseconds(_:), nanoseconds(_:), seconds(_:), timeInterval
    Empty: completeImmediately, init(completeImmediately:), init(completeImmediately:outputType:failureType:),
      receive(subscriber:)
    Fail: error, init(error:), init(outputType:failure:), receive(subscriber:)
    Future: Promise, init(_:), receive(subscriber:), value
    ImmediateScheduler: SchedulerOptions, SchedulerTimeType, minimumTolerance, now,
      schedule(after:interval:tolerance:options:_:), schedule(after:tolerance:options:_:), schedule(options:_:), shared
    ImmediateScheduler.SchedulerTimeType: Stride, advanced(by:), distance(to:)
    ImmediateScheduler.SchedulerTimeType.Stride: *(lhs:rhs:), *=(lhs:rhs:), +(lhs:rhs:), +=(lhs:rhs:), -(lhs:rhs:),
      -=(lhs:rhs:), <(lhs:rhs:), init(_:), init(exactly:), init(floatLiteral:), init(integerLiteral:), magnitude,
      microseconds(_:), milliseconds(_:), nanoseconds(_:), seconds(_:)
    JSONDecoder: Input
    JSONEncoder: Output
    Just: Failure, allSatisfy(_:), append(_:), collect(), compactMap(_:), contains(_:), contains(where:), count(),
      drop(while:), dropFirst(_:), filter(_:), first(), first(where:), ignoreOutput(), init(_:), last(), last(where:),
      map(_:), mapError(_:), max(), max(by:), min(), min(by:), output, output(at:), output(in:), prefix(_:),
      prefix(while:), prepend(_:), receive(subscriber:), reduce(_:_:), removeDuplicates(), removeDuplicates(by:),
      replaceEmpty(with:), replaceError(with:), retry(_:), scan(_:_:), setFailureType(to:), tryAllSatisfy(_:),
      tryContains(where:), tryMap(_:), tryReduce(_:_:), tryRemoveDuplicates(by:), tryScan(_:_:)
    NotificationCenter: Publisher, publisher(for:object:)
    NotificationCenter.Publisher: ==(lhs:rhs:), Failure, Output, center, init(center:name:object:), name, object,
      receive(subscriber:)
    ObservableObject: ObjectWillChangePublisher, objectWillChange
    ObservableObjectPublisher: Failure, Output, init(), receive(subscriber:), send()
    OperationQueue: SchedulerOptions, SchedulerTimeType, minimumTolerance, now,
      schedule(after:interval:tolerance:options:_:), schedule(after:tolerance:options:_:), schedule(options:_:)
    OperationQueue.SchedulerTimeType: <(lhs:rhs:), Stride, advanced(by:), date, distance(to:), init(_:)
    OperationQueue.SchedulerTimeType.Stride: *(lhs:rhs:), *=(lhs:rhs:), +(lhs:rhs:), +=(lhs:rhs:), -(lhs:rhs:),
      -=(lhs:rhs:), <(lhs:rhs:), init(_:), init(exactly:), init(floatLiteral:), init(integerLiteral:), magnitude,
      microseconds(_:), milliseconds(_:), nanoseconds(_:), seconds(_:), timeInterval
    Optional: Publisher, publisher
    Optional.Publisher: Failure, Output, allSatisfy(_:), collect(), compactMap(_:), contains(_:), contains(where:),
      count(), drop(while:), dropFirst(_:), filter(_:), first(), first(where:), ignoreOutput(), init(_:), last(),
      last(where:), map(_:), max(), max(by:), min(), min(by:), output, output(at:), output(in:), prefix(_:),
      prefix(while:), receive(subscriber:), reduce(_:_:), removeDuplicates(), removeDuplicates(by:), replaceEmpty(with:),
      replaceError(with:), retry(_:), scan(_:_:)
    PassthroughSubject: init(), receive(subscriber:), send(_:), send(completion:), send(subscription:)
    PropertyListDecoder: Input
    PropertyListEncoder: Output
    Published: Publisher, init(initialValue:), init(wrappedValue:), projectedValue,
      subscript(_enclosingInstance:wrapped:storage:), wrappedValue
    Published.Publisher: Failure, Output, receive(subscriber:)
    Publisher: Failure, Output, allSatisfy(_:), append(_:), assertNoFailure(_:file:line:), assign(to:), assign(to:on:),
      breakpoint(receiveSubscription:receiveOutput:receiveCompletion:), breakpointOnError(),
      buffer(size:prefetch:whenFull:), catch(_:), collect(), collect(_:), collect(_:options:), combineLatest(_:),
      combineLatest(_:_:), combineLatest(_:_:_:), combineLatest(_:_:_:_:), compactMap(_:), contains(_:), contains(where:),
      count(), debounce(for:scheduler:options:), decode(type:decoder:), delay(for:tolerance:scheduler:options:),
      drop(untilOutputFrom:), drop(while:), dropFirst(_:), encode(encoder:), eraseToAnyPublisher(), filter(_:), first(),
      first(where:), flatMap(maxPublishers:_:),
      handleEvents(receiveSubscription:receiveOutput:receiveCompletion:receiveCancel:receiveRequest:), ignoreOutput(),
      last(), last(where:), makeConnectable(), map(_:), map(_:_:), map(_:_:_:), mapError(_:), max(), max(by:),
      measureInterval(using:options:), merge(with:), merge(with:_:), merge(with:_:_:), merge(with:_:_:_:),
      merge(with:_:_:_:_:), merge(with:_:_:_:_:_:), merge(with:_:_:_:_:_:_:), min(), min(by:), multicast(_:),
      multicast(subject:), output(at:), output(in:), prefix(_:), prefix(untilOutputFrom:), prefix(while:), prepend(_:),
      print(_:to:), receive(on:options:), receive(subscriber:), reduce(_:_:), removeDuplicates(), removeDuplicates(by:),
      replaceEmpty(with:), replaceError(with:), replaceNil(with:), retry(_:), scan(_:_:), setFailureType(to:), share(),
      sink(receiveCompletion:receiveValue:), sink(receiveValue:), subscribe(_:), subscribe(on:options:), switchToLatest(),
      throttle(for:scheduler:latest:), timeout(_:scheduler:options:customError:), tryAllSatisfy(_:), tryCatch(_:),
      tryCompactMap(_:), tryContains(where:), tryDrop(while:), tryFilter(_:), tryFirst(where:), tryLast(where:),
      tryMap(_:), tryMax(by:), tryMin(by:), tryPrefix(while:), tryReduce(_:_:), tryRemoveDuplicates(by:), tryScan(_:_:),
      values, zip(_:), zip(_:_:), zip(_:_:_:), zip(_:_:_:_:)
    Publishers: AllSatisfy, AssertNoFailure, Autoconnect, Breakpoint, Buffer, BufferingStrategy, Catch, Collect,
      CollectByCount, CollectByTime, CombineLatest, CombineLatest3, CombineLatest4, CompactMap, Comparison, Concatenate,
      Contains, ContainsWhere, Count, Debounce, Decode, Delay, Drop, DropUntilOutput, DropWhile, Encode, Filter, First,
      FirstWhere, FlatMap, HandleEvents, IgnoreOutput, Last, LastWhere, MakeConnectable, Map, MapError, MapKeyPath,
      MapKeyPath2, MapKeyPath3, MeasureInterval, Merge, Merge3, Merge4, Merge5, Merge6, Merge7, Merge8, MergeMany,
      Multicast, Output, PrefetchStrategy, PrefixUntilOutput, PrefixWhile, Print, ReceiveOn, Reduce, RemoveDuplicates,
      ReplaceEmpty, ReplaceError, Retry, Scan, Sequence, SetFailureType, Share, SubscribeOn, SwitchToLatest, Throttle,
      TimeGroupingStrategy, Timeout, TryAllSatisfy, TryCatch, TryCompactMap, TryComparison, TryContainsWhere,
      TryDropWhile, TryFilter, TryFirstWhere, TryLastWhere, TryMap, TryPrefixWhile, TryReduce, TryRemoveDuplicates,
      TryScan, Zip, Zip3, Zip4
    Publishers.AllSatisfy: Failure, Output, init(upstream:predicate:), predicate, receive(subscriber:), upstream
    Publishers.AssertNoFailure: Failure, Output, file, init(upstream:prefix:file:line:), line, prefix,
      receive(subscriber:), upstream
    Publishers.Autoconnect: Failure, Output, init(upstream:), receive(subscriber:), upstream
    Publishers.Breakpoint: Failure, Output, init(upstream:receiveSubscription:receiveOutput:receiveCompletion:),
      receive(subscriber:), receiveCompletion, receiveOutput, receiveSubscription, upstream
    Publishers.Buffer: Failure, Output, init(upstream:size:prefetch:whenFull:), prefetch, receive(subscriber:), size,
      upstream, whenFull
    Publishers.BufferingStrategy: customError, dropNewest, dropOldest
    Publishers.Catch: Failure, Output, handler, init(upstream:handler:), receive(subscriber:), upstream
    Publishers.Collect: Failure, Output, init(upstream:), receive(subscriber:), upstream
    Publishers.CollectByCount: Failure, Output, count, init(upstream:count:), receive(subscriber:), upstream
    Publishers.CollectByTime: Failure, Output, init(upstream:strategy:options:), options, receive(subscriber:), strategy,
      upstream
    Publishers.CombineLatest: Failure, Output, a, b, init(_:_:), receive(subscriber:)
    Publishers.CombineLatest3: Failure, Output, a, b, c, init(_:_:_:), receive(subscriber:)
    Publishers.CombineLatest4: Failure, Output, a, b, c, d, init(_:_:_:_:), receive(subscriber:)
    Publishers.CompactMap: Failure, compactMap(_:), init(upstream:transform:), map(_:), receive(subscriber:), transform,
      upstream
    Publishers.Comparison: Failure, Output, areInIncreasingOrder, init(upstream:areInIncreasingOrder:),
      receive(subscriber:), upstream
    Publishers.Concatenate: Failure, Output, init(prefix:suffix:), prefix, receive(subscriber:), suffix
    Publishers.Contains: Failure, Output, init(upstream:output:), output, receive(subscriber:), upstream
    Publishers.ContainsWhere: Failure, Output, init(upstream:predicate:), predicate, receive(subscriber:), upstream
    Publishers.Count: Failure, Output, init(upstream:), receive(subscriber:), upstream
    Publishers.Debounce: Failure, Output, dueTime, init(upstream:dueTime:scheduler:options:), options,
      receive(subscriber:), scheduler, upstream
    Publishers.Decode: Failure, init(upstream:decoder:), receive(subscriber:), upstream
    Publishers.Delay: Failure, Output, init(upstream:interval:tolerance:scheduler:options:), interval, options,
      receive(subscriber:), scheduler, tolerance, upstream
    Publishers.Drop: Failure, Output, count, init(upstream:count:), receive(subscriber:), upstream
    Publishers.DropUntilOutput: Failure, Output, init(upstream:other:), other, receive(subscriber:), upstream
    Publishers.DropWhile: Failure, Output, init(upstream:predicate:), predicate, receive(subscriber:), upstream
    Publishers.Encode: Failure, Output, init(upstream:encoder:), receive(subscriber:), upstream
    Publishers.Filter: Failure, Output, filter(_:), init(upstream:isIncluded:), isIncluded, receive(subscriber:),
      tryFilter(_:), upstream
    Publishers.First: Failure, Output, init(upstream:), receive(subscriber:), upstream
    Publishers.FirstWhere: Failure, Output, init(upstream:predicate:), predicate, receive(subscriber:), upstream
    Publishers.FlatMap: Failure, Output, init(upstream:maxPublishers:transform:), maxPublishers, receive(subscriber:),
      transform, upstream
    Publishers.HandleEvents: Failure, Output,
      init(upstream:receiveSubscription:receiveOutput:receiveCompletion:receiveCancel:receiveRequest:),
      receive(subscriber:), receiveCancel, receiveCompletion, receiveOutput, receiveRequest, receiveSubscription, upstream
    Publishers.IgnoreOutput: Failure, Output, init(upstream:), receive(subscriber:), upstream
    Publishers.Last: Failure, Output, init(upstream:), receive(subscriber:), upstream
    Publishers.LastWhere: Failure, Output, init(upstream:predicate:), predicate, receive(subscriber:), upstream
    Publishers.MakeConnectable: Failure, Output, connect(), init(upstream:), receive(subscriber:)
    Publishers.Map: Failure, init(upstream:transform:), map(_:), receive(subscriber:), transform, tryMap(_:), upstream
    Publishers.MapError: Output, init(upstream:transform:), receive(subscriber:), transform, upstream
    Publishers.MapKeyPath: Failure, keyPath, receive(subscriber:), upstream
    Publishers.MapKeyPath2: Failure, Output, keyPath0, keyPath1, receive(subscriber:), upstream
    Publishers.MapKeyPath3: Failure, Output, keyPath0, keyPath1, keyPath2, receive(subscriber:), upstream
    Publishers.MeasureInterval: Failure, Output, init(upstream:scheduler:), receive(subscriber:), scheduler, upstream
    Publishers.Merge: Failure, Output, a, b, init(_:_:), merge(with:), merge(with:_:), merge(with:_:_:),
      merge(with:_:_:_:), merge(with:_:_:_:_:), merge(with:_:_:_:_:_:), receive(subscriber:)
    Publishers.Merge3: Failure, Output, a, b, c, init(_:_:_:), merge(with:), merge(with:_:), merge(with:_:_:),
      merge(with:_:_:_:), merge(with:_:_:_:_:), receive(subscriber:)
    Publishers.Merge4: Failure, Output, a, b, c, d, init(_:_:_:_:), merge(with:), merge(with:_:), merge(with:_:_:),
      merge(with:_:_:_:), receive(subscriber:)
    Publishers.Merge5: Failure, Output, a, b, c, d, e, init(_:_:_:_:_:), merge(with:), merge(with:_:), merge(with:_:_:),
      receive(subscriber:)
    Publishers.Merge6: Failure, Output, a, b, c, d, e, f, init(_:_:_:_:_:_:), merge(with:), merge(with:_:),
      receive(subscriber:)
    Publishers.Merge7: Failure, Output, a, b, c, d, e, f, g, init(_:_:_:_:_:_:_:), merge(with:), receive(subscriber:)
    Publishers.Merge8: Failure, Output, a, b, c, d, e, f, g, h, init(_:_:_:_:_:_:_:_:), receive(subscriber:)
    Publishers.MergeMany: Failure, Output, init(_:), merge(with:), publishers, receive(subscriber:)
    Publishers.Multicast: Failure, Output, connect(), createSubject, init(upstream:createSubject:), receive(subscriber:),
      upstream
    Publishers.Output: Failure, Output, init(upstream:range:), range, receive(subscriber:), upstream
    Publishers.PrefetchStrategy: byRequest, keepFull
    Publishers.PrefixUntilOutput: Failure, Output, init(upstream:other:), other, receive(subscriber:), upstream
    Publishers.PrefixWhile: Failure, Output, init(upstream:predicate:), predicate, receive(subscriber:), upstream
    Publishers.Print: Failure, Output, init(upstream:prefix:to:), prefix, receive(subscriber:), stream, upstream
    Publishers.ReceiveOn: Failure, Output, init(upstream:scheduler:options:), options, receive(subscriber:), scheduler,
      upstream
    Publishers.Reduce: Failure, init(upstream:initial:nextPartialResult:), initial, nextPartialResult,
      receive(subscriber:), upstream
    Publishers.RemoveDuplicates: Failure, Output, init(upstream:predicate:), predicate, receive(subscriber:), upstream
    Publishers.ReplaceEmpty: Failure, Output, init(upstream:output:), output, receive(subscriber:), upstream
    Publishers.ReplaceError: Failure, Output, init(upstream:output:), output, receive(subscriber:), upstream
    Publishers.Retry: Failure, Output, init(upstream:retries:), receive(subscriber:), retries, upstream
    Publishers.Scan: Failure, init(upstream:initialResult:nextPartialResult:), initialResult, nextPartialResult,
      receive(subscriber:), upstream
    Publishers.Sequence: Output, allSatisfy(_:), append(_:), collect(), compactMap(_:), contains(_:), contains(where:),
      count(), drop(while:), dropFirst(_:), filter(_:), first(), first(where:), ignoreOutput(), init(sequence:), last(),
      last(where:), map(_:), max(), max(by:), min(), min(by:), output(at:), output(in:), prefix(_:), prefix(while:),
      prepend(_:), receive(subscriber:), reduce(_:_:), removeDuplicates(), replaceNil(with:), scan(_:_:), sequence,
      setFailureType(to:), tryAllSatisfy(_:), tryContains(where:), tryReduce(_:_:)
    Publishers.SetFailureType: Output, init(upstream:), receive(subscriber:), setFailureType(to:), upstream
    Publishers.Share: ==(lhs:rhs:), Failure, Output, init(upstream:), receive(subscriber:), upstream
    Publishers.SubscribeOn: Failure, Output, init(upstream:scheduler:options:), options, receive(subscriber:), scheduler,
      upstream
    Publishers.SwitchToLatest: Failure, Output, init(upstream:), receive(subscriber:), upstream
    Publishers.Throttle: Failure, Output, init(upstream:interval:scheduler:latest:), interval, latest,
      receive(subscriber:), scheduler, upstream
    Publishers.TimeGroupingStrategy: byTime, byTimeOrCount
    Publishers.Timeout: Failure, Output, customError, init(upstream:interval:scheduler:options:customError:), interval,
      options, receive(subscriber:), scheduler, upstream
    Publishers.TryAllSatisfy: Failure, Output, init(upstream:predicate:), predicate, receive(subscriber:), upstream
    Publishers.TryCatch: Failure, Output, handler, init(upstream:handler:), receive(subscriber:), upstream
    Publishers.TryCompactMap: Failure, compactMap(_:), init(upstream:transform:), receive(subscriber:), transform,
      upstream
    Publishers.TryComparison: Failure, Output, areInIncreasingOrder, init(upstream:areInIncreasingOrder:),
      receive(subscriber:), upstream
    Publishers.TryContainsWhere: Failure, Output, init(upstream:predicate:), predicate, receive(subscriber:), upstream
    Publishers.TryDropWhile: Failure, Output, init(upstream:predicate:), predicate, receive(subscriber:), upstream
    Publishers.TryFilter: Failure, Output, filter(_:), init(upstream:isIncluded:), isIncluded, receive(subscriber:),
      tryFilter(_:), upstream
    Publishers.TryFirstWhere: Failure, Output, init(upstream:predicate:), predicate, receive(subscriber:), upstream
    Publishers.TryLastWhere: Failure, Output, init(upstream:predicate:), predicate, receive(subscriber:), upstream
    Publishers.TryMap: Failure, init(upstream:transform:), map(_:), receive(subscriber:), transform, tryMap(_:), upstream
    Publishers.TryPrefixWhile: Failure, Output, init(upstream:predicate:), predicate, receive(subscriber:), upstream
    Publishers.TryReduce: Failure, init(upstream:initial:nextPartialResult:), initial, nextPartialResult,
      receive(subscriber:), upstream
    Publishers.TryRemoveDuplicates: Failure, Output, init(upstream:predicate:), predicate, receive(subscriber:), upstream
    Publishers.TryScan: Failure, init(upstream:initialResult:nextPartialResult:), initialResult, nextPartialResult,
      receive(subscriber:), upstream
    Publishers.Zip: Failure, Output, a, b, init(_:_:), receive(subscriber:)
    Publishers.Zip3: Failure, Output, a, b, c, init(_:_:_:), receive(subscriber:)
    Publishers.Zip4: Failure, Output, a, b, c, d, init(_:_:_:_:), receive(subscriber:)
    Record: Recording, init(output:completion:), init(record:), init(recording:), receive(subscriber:), recording
    Record.Recording: Input, completion, encode(into:), encode(to:), init(), init(from:), init(output:completion:),
      output, receive(_:), receive(completion:)
    Result: Publisher, publisher
    Result.Publisher: Output, allSatisfy(_:), collect(), contains(_:), contains(where:), count(), first(), ignoreOutput(),
      init(_:), last(), map(_:), mapError(_:), max(), max(by:), min(), min(by:), receive(subscriber:), reduce(_:_:),
      removeDuplicates(), removeDuplicates(by:), replaceEmpty(with:), replaceError(with:), result, retry(_:), scan(_:_:),
      setFailureType(to:), tryAllSatisfy(_:), tryContains(where:), tryMap(_:), tryMax(by:), tryMin(by:), tryReduce(_:_:),
      tryRemoveDuplicates(by:), tryScan(_:_:)
    RunLoop: SchedulerOptions, SchedulerTimeType, minimumTolerance, now, schedule(after:interval:tolerance:options:_:),
      schedule(after:tolerance:options:_:), schedule(options:_:)
    RunLoop.SchedulerTimeType: <(lhs:rhs:), Stride, advanced(by:), date, distance(to:), init(_:)
    RunLoop.SchedulerTimeType.Stride: *(lhs:rhs:), *=(lhs:rhs:), +(lhs:rhs:), +=(lhs:rhs:), -(lhs:rhs:), -=(lhs:rhs:),
      <(lhs:rhs:), init(_:), init(exactly:), init(floatLiteral:), init(integerLiteral:), magnitude, microseconds(_:),
      milliseconds(_:), nanoseconds(_:), seconds(_:), timeInterval
    Scheduler: SchedulerOptions, SchedulerTimeType, minimumTolerance, now, schedule(_:), schedule(after:_:),
      schedule(after:interval:_:), schedule(after:interval:tolerance:_:), schedule(after:interval:tolerance:options:_:),
      schedule(after:tolerance:_:), schedule(after:tolerance:options:_:), schedule(options:_:)
    SchedulerTimeIntervalConvertible: microseconds(_:), milliseconds(_:), nanoseconds(_:), seconds(_:)
    Subject: send(), send(_:), send(completion:), send(subscription:)
    Subscriber: Failure, Input, receive(), receive(_:), receive(completion:), receive(subscription:)
    Subscribers: Assign, Completion, Demand, Sink
    Subscribers.Assign: Failure, cancel(), customMirror, description, init(object:keyPath:), keyPath, object,
      playgroundDescription, receive(_:), receive(completion:), receive(subscription:)
    Subscribers.Completion: encode(to:), failure, finished, init(from:)
    Subscribers.Demand: !=(lhs:rhs:), *(lhs:rhs:), *=(lhs:rhs:), +(lhs:rhs:), +=(lhs:rhs:), -(lhs:rhs:), -=(lhs:rhs:),
      <(lhs:rhs:), <=(lhs:rhs:), ==(lhs:rhs:), >(lhs:rhs:), >=(lhs:rhs:), description, encode(to:), init(from:), max,
      max(_:), none, unlimited
    Subscribers.Sink: cancel(), customMirror, description, init(receiveCompletion:receiveValue:), playgroundDescription,
      receive(_:), receive(completion:), receive(subscription:), receiveCompletion, receiveValue
    Subscription: request(_:)
    Subscriptions: empty
    Swift.Sequence: publisher
    Timer: TimerPublisher, publish(every:tolerance:on:in:options:)
    Timer.TimerPublisher: Failure, Output, connect(), init(interval:tolerance:runLoop:mode:options:), interval, mode,
      options, receive(subscriber:), runLoop, tolerance
    TopLevelDecoder: Input, decode(_:from:)
    TopLevelEncoder: Output, encode(_:)
    URLSession: DataTaskPublisher, dataTaskPublisher(for:)
    URLSession.DataTaskPublisher: Failure, Output, init(request:session:), receive(subscriber:), request, session
    """
}
