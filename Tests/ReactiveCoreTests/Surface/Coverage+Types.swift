extension Coverage {
  /// Sources, subjects, subscribers and what else is not an operator.
  static let types: [Coverage] = [
    Coverage(
      "Publisher", in: "AnyPublisherTests",
      [
        "calledBackItPassesEverythingOn": [.demand, .cancel, .immediate, .reentrancy],
        "passesEverythingOn": [.normal, .demand, .finish],
        "crossesIsolationWhenItsValuesMay": [.immediate, .race],
        "releasesEverything": [.finish, .failure, .cancel, .lifecycle],
      ]),
    Coverage(
      "AnyPublisher", in: "AnyPublisherTests",
      [
        "calledBackItPassesEverythingOn": [.demand, .cancel, .immediate, .reentrancy],
        "passesEverythingOn": [.normal, .demand, .finish],
        "crossesIsolationWhenItsValuesMay": [.immediate, .race],
        "releasesEverything": [.finish, .failure, .cancel, .lifecycle],
      ]),
    Coverage(
      "AnySubscriber", in: "AnySubscriberTests",
      [
        "passesEverythingOnUnderTheSameIdentity": [.normal, .demand, .finish],
        "isMadeOfFunctions": [.normal, .demand, .finish],
        "withoutFunctionsItDoesNothing": .finish,
        "feedsASubject": [.normal, .demand, .finish],
      ]),
    Coverage(
      "AnyCancellable", in: "AnyCancellableTests",
      [
        "cancelsOnce": [.normal, .cancel],
        "cancelsWhenReleased": [.normal, .lifecycle],
        "letsGoOfItsActionOnCancellation": [.normal, .cancel, .lifecycle],
        "isKeptInSetsAndCollections": .normal,
        "crossesThreads": [.normal, .cancel, .race],
      ]),
    Coverage(
      "CombineIdentifier", in: "CombineIdentifierTests",
      [
        "everyOneIsDifferent": .normal,
        "objectsKeepTheirs": .normal,
      ]),
    Coverage(
      "Subscribers.Sink", in: "SinkTests",
      [
        "itsFunctionMaySendToItsSourceAndCancel": [.normal, .cancel, .reentrancy],
        "aSourceMayDeliverEverythingWithinTheRequest": [.normal, .finish, .immediate],
        "asksForEverythingAndHandsOver": [.normal, .demand, .finish, .failure, .cancel],
        "cancelsOnceAndThenIgnoresEverything": [.normal, .demand, .cancel],
        "cancelsWhenReleased": [.demand, .cancel, .lifecycle],
        "cancelsASecondSubscription": [.demand, .cancel],
        "cancelledBeforeItsSubscriptionItCancelsIt": .cancel,
        "releasesItsFunctions": [.finish, .cancel, .lifecycle],
        "keepsTheFunctionsWhileAValueUsesThem": [.cancel, .lifecycle],
        "valuesAndCancellationMayRace": [.cancel, .race],
      ]),
    Coverage(
      "Subscribers.Assign", in: "AssignTests",
      [
        "thePropertyMaySendToItsSourceAndCancel": [.normal, .cancel, .reentrancy],
        "aSourceMayDeliverEverythingWithinTheRequest": [.normal, .immediate],
        "writesEachValue": [.normal, .demand, .cancel],
        "letsGoOfTheObjectAtTheEnd": [.finish, .cancel, .lifecycle],
        "ignoresValuesBeforeAndCancelsASecondSubscription": [.normal, .demand, .cancel],
      ]),
    Coverage(
      "Subscribers.Demand", in: "DemandTests",
      [
        "sumsAreUnlimitedIfEitherIsOrIfTooLarge": [.normal, .demand],
        "differencesDoNotFallBelowNone": [.normal, .demand],
        "productsAreUnlimitedIfTooLarge": [.normal, .demand],
        "unlimitedIsMoreThanAnyNumberAndEqualToItself": [.normal, .demand],
        "comparesWithNumbers": [.normal, .demand],
        "showsItself": [.normal, .demand],
        "survivesCoding": [.normal, .demand],
        "readsNumbersThatAreTooLargeAsUnlimited": .normal,
        "stopsTheProgramOnANegativeNumber": [.normal, .demand],
      ]),
    Coverage(
      "Subscribers.Completion", in: "CompletionTests",
      [
        "comparesAndHashes": [.normal, .finish, .failure],
        "survivesCoding": [.normal, .finish, .failure],
        "isWrittenAsCombineWritesIt": [.normal, .finish, .failure],
      ]),
    Coverage(
      "Subscriptions.empty", in: "EmptyTests",
      [
        "finishesAtOnceOrNever": [.normal, .finish, .immediate]
      ]),
    Coverage(
      "Just", in: "JustTests",
      [
        "deliversOnRequestAndFinishes": [.normal, .demand, .finish, .immediate],
        "deliversNothingAfterCancellation": [.normal, .demand, .cancel, .immediate],
        "showsItsValue": .immediate,
        "releasesItsSubscriber": [.demand, .cancel, .immediate, .lifecycle],
        "stopsTheProgramOnARequestForNothing": .immediate,
      ]),
    Coverage(
      "Empty", in: "EmptyTests",
      [
        "finishesAtOnceOrNever": [.normal, .finish, .immediate]
      ]),
    Coverage(
      "Fail", in: "FailTests",
      [
        "failsAtOnce": [.normal, .failure]
      ]),
    Coverage(
      "Future", in: "FutureTests",
      [
        "runsAtOnceAndDeliversToEveryone": [.normal, .demand, .finish, .failure],
        "aFailureNeedsNoDemand": .failure,
        "deliversNothingAfterCancellation": [.normal, .demand, .cancel],
        "releasesItsSubscribers": [.demand, .cancel, .lifecycle],
        "subscribingAndSettlingMayRace": [.normal, .demand, .finish, .race],
      ]),
    Coverage(
      "Deferred", in: "DeferredTests",
      [
        "makesAPublisherForEachSubscriber": [.normal, .demand, .finish, .immediate]
      ]),
    Coverage(
      "Record", in: "RecordTests",
      [
        "deliversWhatWasRecorded": [.normal, .demand, .failure],
        "finishesUnlessSomethingElseIsRecorded": [.normal, .finish],
        "anEmptyRecordingEndsAtOnce": .failure,
        "deliversNothingAfterCancellation": [.normal, .demand, .finish, .cancel],
        "showsValuesAndCompletion": .finish,
        "releasesItsSubscriber": [.demand, .finish, .cancel, .lifecycle],
        "isDecodedAsItWasEncoded": .failure,
        "aCompleteRecordingTakesNothingMore": .finish,
      ]),
    Coverage(
      "Publishers.Sequence", in: "SequenceTests",
      [
        "deliversAsMuchAsAskedForAndFinishesWithTheLast": [.normal, .demand, .finish, .immediate],
        "anEmptySequenceFinishesAtOnce": [.finish, .immediate],
        "addsTheDemandReturnedAndThatOfRequestsWithinAValue": [.normal, .demand, .immediate, .reentrancy],
        "cancellingWithinAValueStopsAtOnce": [.normal, .cancel, .immediate, .reentrancy],
        "cancellingWithinTheLastValuePreventsTheFinish": [.normal, .cancel, .immediate, .reentrancy],
        "aMillionValuesOneByOneNeedNoMoreStackThanOne": [.demand, .immediate],
        "showsItsSequence": .immediate,
        "releasesEverything": [.demand, .finish, .cancel, .immediate, .lifecycle],
        "requestsFromManyThreadsDeliverExactlyWhatWasAskedFor": [.normal, .demand, .immediate, .race],
        "cancellationMayRaceWithDelivery": [.demand, .finish, .cancel, .immediate, .race],
      ]),
    Coverage(
      "Optional.Publisher", in: "OptionalPublisherTests",
      [
        "deliversTheValue": [.normal, .demand, .finish, .immediate],
        "finishesAtOnceWithoutOne": [.finish, .immediate],
      ]),
    Coverage(
      "Result.Publisher", in: "ResultPublisherTests",
      [
        "deliversTheValue": [.normal, .demand, .finish, .immediate],
        "failsAtOnce": [.failure, .immediate],
      ]),
    Coverage(
      "Published", in: "PublishedTests",
      [
        "tellsBeforeThePropertyChanges": .cancel,
        "deliversWhatIsAskedForAndTheLatestWhenAskedAgain": [.normal, .demand, .cancel],
        "laterSubscribersGetTheCurrentValue": .normal,
        "aValueSetBySubscribersIsPublishedNextAndRemains": .cancel,
        "feedingItselfNeedsNoMoreStackThanOnce": .cancel,
        "releasesValuesAndSubscribers": [.cancel, .lifecycle],
        "settingAndSubscribingMayRace": [.normal, .race],
        "theValueSetLastByRacingThreadsIsTheOnePublishedLast": [.normal, .race],
        "aThreadReadsWhatItHasSet": [.cancel, .race],
      ]),
    Coverage(
      "ObservableObject", in: "ObservableObjectTests",
      [
        "tellsBeforeAPublishedPropertyChanges": [.normal, .cancel],
        "isTheSameForAsLongAsTheObjectLives": .normal,
        "findsPropertiesOfSuperclassesThatAreNotObservable": [.normal, .cancel],
        "findsPropertiesOfGenericClasses": [.normal, .cancel],
        "objectsWithoutPublishedPropertiesTellByHand": [.normal, .cancel],
        "objectsThatComeAndGoDoNotInheritPublishers": .normal,
        "objectsAreNotKeptAlive": [.normal, .lifecycle],
        "anObjectMayBringItsOwnPublisher": [.normal, .cancel],
        "threadsAgreeOnThePublisher": [.normal, .race],
      ]),
    Coverage(
      "ObservableObjectPublisher", in: "ObservableObjectPublisherTests",
      [
        "theFirstRequestStandsForAll": [.normal, .demand, .cancel],
        "showsItsSubscription": [.normal, .cancel],
        "cancellationReleasesTheSubscriber": [.normal, .demand, .cancel, .lifecycle],
        "everySendOfRacingThreadsIsHeard": [.normal, .demand, .cancel, .race],
      ]),
    Coverage(
      "PassthroughSubject", in: "PassthroughSubjectTests",
      [
        "deliversNoMoreThanAskedFor": [.normal, .demand],
        "addsTheDemandReturnedForAValue": [.normal, .demand],
        "eachSubscriberHasItsOwnDemand": [.normal, .demand, .finish],
        "onlyTheFirstCompletionCounts": [.demand, .finish, .failure, .reentrancy],
        "latecomersGetOnlyTheCompletion": .failure,
        "feedsItselfAMillionTimesOnAConstantStack": .cancel,
        "allSubscribersSeeTheSameOrderWhenOneSends": [.normal, .finish, .reentrancy],
        "cancellingFromWithinAValueTakesEffectAtOnce": [.normal, .cancel, .reentrancy],
        "aSubscriberThatCancelsInReceiveSubscriptionGetsNothing": [.demand, .finish, .cancel, .reentrancy],
        "completionDuringReceiveSubscriptionComesAfterIt": [.finish, .reentrancy],
        "aSubscriberAddedWhileDeliveringGetsWhatFollows": [.normal, .reentrancy],
        "requestsFromItsSourcesOnceASubscriberAsks": [.demand, .cancel],
        "cancelsItsSourcesWhenReleased": .lifecycle,
        "releasesEverything": [.finish, .cancel, .reentrancy, .lifecycle],
        "manySubscribersComeAndGoInOrder": .cancel,
        "sendingFromManyThreadsIsSerialAndKeepsTheOrderOfEachThread": [.cancel, .race],
        "subscribingCancellingAndCompletingMayRace": [.finish, .race],
      ]),
    Coverage(
      "CurrentValueSubject", in: "CurrentValueSubjectTests",
      [
        "givesTheCurrentValueOnTheFirstRequest": [.normal, .demand],
        "keepsTheLatestValue": .finish,
        "latecomersGetOnlyTheCompletion": .failure,
        "onlyTheFirstCompletionCountsAndNothingFollows": [.normal, .demand, .finish, .failure, .reentrancy],
        "demandReturnedForTheFirstValueCounts": [.normal, .demand],
        "aSubscriberThatSubscribesWithinAValueGetsTheCurrentOneAtOnce": .cancel,
        "feedsItselfOnAConstantStack": .cancel,
        "allSubscribersEndWithTheLatestValueWhenOneSends": [.normal, .reentrancy],
        "cancellingWithinTheFirstValueTakesEffectAtOnce": [.normal, .cancel, .reentrancy],
        "completionWithinTheFirstValueComesAfterIt": [.normal, .finish, .reentrancy],
        "releasesEverything": [.finish, .cancel, .reentrancy, .lifecycle],
        "theLatestValueIsNeverStaleWhenManySend": [.cancel, .race],
        "noValueComesTwiceWhenSubscribingAndSendingRace": [.normal, .demand, .race],
      ]),
    Coverage(
      "ReplaySubject", in: "ReplaySubjectTests",
      [
        "theExampleDoesWhatItSays": .cancel,
        "aLatecomerGetsWhatIsKeptAsItAsksForItThenWhatFollows": .demand,
        "withABufferOfNothingItIsAPassthroughSubject": [.demand, .finish],
        "oneWhoFallsBehindGoesOnWithTheOldestKept": .demand,
        "oneWhoHasAskedMissesNothingHoweverBusy": [.demand, .reentrancy],
        "addsTheDemandReturnedForAValue": .demand,
        "theCompletionComesAfterTheValues": [.demand, .finish, .failure],
        "anEndWithoutValuesNeedsNoDemandButComesAfterTheSubscription": [.finish, .reentrancy],
        "cancellingFromWithinAValueTakesEffectAtOnce": [.normal, .demand, .finish, .cancel, .reentrancy],
        "feedsItselfAMillionTimesOnAConstantStack": .cancel,
        "asksItsSourcesForEverythingAndCancelsThem": [.demand, .finish, .cancel],
        "keepsNoMoreThanItsSize": [.finish, .cancel],
        "releasesEverything": [.finish, .failure, .cancel, .reentrancy, .lifecycle],
        "whileManyThreadsSendAllGetTheSameOrderAndWhoAsksForEverythingMissesNothing": [
          .normal, .demand, .finish, .race,
        ],
        "requestsAndValuesFromDifferentThreadsLoseNothing": [.demand, .race],
      ]),
    Coverage(
      "ImmediateScheduler", in: "ImmediateSchedulerTests",
      [
        "runsEverythingAtOnce": [.normal, .cancel],
        "timeStandsStill": .normal,
      ]),
    Coverage(
      "Scheduler", in: "ImmediateSchedulerTests",
      [
        "runsEverythingAtOnce": [.normal, .cancel],
        "timeStandsStill": .normal,
      ]),
    Coverage(
      "DispatchQueue as Scheduler", in: "DispatchQueueSchedulerTests",
      [
        "aStrideIsANumberOfNanosecondsAndALiteralIsInSeconds": .normal,
        "aStrideIsMadeOfAnInterval": .normal,
        "strideArithmeticStopsAtTheEndsOfTheRange": .normal,
        "strideArithmetic": .normal,
        "distancesHaveASignAndStopAtTheEndsOfTheRange": .normal,
        "advancingStopsAtTheEndsOfTheRange": .normal,
        "timesCompareAndHash": .normal,
        "timesAndStridesSurviveEncoding": .normal,
        "optionsAreEmptyUnlessGiven": .normal,
        "aSerialQueueRunsFunctionsInOrder": .normal,
        "aDelayedFunctionIsNeverEarly": .normal,
        "aMomentInThePastIsDueAtOnce": .normal,
        "theGroupWaitsForWhatIsScheduled": .normal,
        "aRepeatingFunctionRunsUntilItIsCancelled": [.normal, .cancel],
        "cancellingReleasesTheFunctionAtOnceAlthoughTheQueueIsBusy": [.normal, .cancel, .lifecycle],
        "aFunctionThatHasRunIsReleased": [.normal, .lifecycle],
        "releasingTheRepetitionCancelsIt": .normal,
        "anIntervalOfNoTimeRepeatsAllTheSame": [.normal, .cancel],
        "schedulingAndCancellingMayRace": [.normal, .cancel, .race],
      ]),
    Coverage(
      "OperationQueue as Scheduler", in: "OperationQueueSchedulerTests",
      [
        "functionsRunInOrder": .normal,
        "aDelayedFunctionIsNeverEarly": .normal,
        "aDelayedFunctionIsAnOperationThatCanBeCancelled": .normal,
        "aDelayedFunctionLetsOthersPass": .normal,
        "aFunctionForTheDistantFutureIsLetGoOf": [.normal, .cancel],
        "aRepeatingFunctionRunsUntilItIsCancelled": [.normal, .cancel],
        "cancellingReleasesTheFunctionAtOnceAlthoughTheQueueIsBusy": [.normal, .cancel, .lifecycle],
        "cancellingMayRaceWithRunning": [.normal, .cancel, .race],
        "nowIsTheDate": .normal,
      ]),
    Coverage(
      "RunLoop as Scheduler", in: "RunLoopSchedulerTests",
      [
        "aFunctionWakesALoopThatSleeps": .normal,
        "functionsRunInOrderOnTheLoopsThread": [.normal, .race],
        "aFunctionScheduledFromTheLoopRunsLater": .normal,
        "aDelayedFunctionIsNeverEarly": .normal,
        "aFunctionForTheDistantFutureIsLetGoOf": [.normal, .lifecycle],
        "aRepeatingFunctionRunsUntilItIsCancelledFromAnotherThread": [.normal, .cancel, .race],
        "cancellingReleasesTheFunctionAtOnce": [.normal, .cancel, .lifecycle],
        "nowIsTheDate": .normal,
      ]),
    Coverage(
      "Publisher.values", in: "AsyncPublisherTests",
      [
        "deliversEveryValueInOrder": [.normal, .immediate],
        "asksForOneValueAtATime": [.demand, .immediate, .reentrancy],
        "cancelsWhenTheLoopIsLeft": [.demand, .cancel, .immediate, .reentrancy],
        "endsWhenTheTaskIsCancelled": .cancel,
        "throwsTheError": [.failure, .reentrancy],
        "anErrorThatComesBeforeItIsAwaitedIsKept": .failure,
        "waitsForASubscriptionThatComesLate": [.immediate, .reentrancy, .race],
      ]),
    Coverage(
      "Future.value", in: "FutureTests",
      [
        "runsAtOnceAndDeliversToEveryone": [.normal, .demand, .finish, .failure],
        "aFailureNeedsNoDemand": .failure,
        "deliversNothingAfterCancellation": [.normal, .demand, .cancel],
        "releasesItsSubscribers": [.demand, .cancel, .lifecycle],
        "subscribingAndSettlingMayRace": [.normal, .demand, .finish, .race],
      ]),
    Coverage(
      "TopLevelEncoder and TopLevelDecoder", in: "CodersTests",
      [
        "whatIsEncodedCanBeDecoded": .normal
      ]),
    Coverage(
      "Timer.publish", in: "TimerPublisherTests",
      [
        "keepsWhatItWasMadeWith": .normal,
        "ticksOnceConnectedAndUntilDisconnected": [.normal, .cancel, .immediate],
        "eachSubscriberGetsWhatItAsksFor": [.normal, .demand, .cancel],
        "aSubscriberCancelsForItselfAlone": [.normal, .cancel, .reentrancy],
        "connectingTwiceTicksOnce": [.normal, .cancel],
        "canBeConnectedAnew": [.normal, .cancel],
        "startsByItselfWithAutoconnect": [.normal, .cancel],
        "releasesEverything": [.normal, .cancel, .lifecycle],
      ]),
    Coverage(
      "NotificationCenter.publisher", in: "NotificationPublisherTests",
      [
        "dropsWhatIsNotAskedFor": [.demand, .immediate],
        "deliversOneNameOfOneObject": [.normal, .immediate],
        "observesFromTheSubscriptionOnAndNoMoreAfterCancellation": [
          .demand, .cancel, .immediate, .reentrancy,
        ],
        "whatIsPostedByTheSubscriberComesNext": [.immediate, .reentrancy],
        "deliversSeriallyAndExactlyWhatIsAskedForWhenManyThreadsPost": [
          .normal, .demand, .immediate, .reentrancy, .race,
        ],
        "isEqualToOneOfTheSameCentreNameAndObject": .identity,
        "aCancelledOrForgottenSubscriptionHoldsNothing": [.cancel, .immediate, .lifecycle],
        "describesItself": .identity,
      ]),
    Coverage(
      "URLSession.dataTaskPublisher", in: "DataTaskPublisherTests",
      [
        "nothingIsSentBeforeDemandAndAllSubscriptionsSendAnew": [.normal, .demand],
        "anErrorStatusIsAValue": [.normal, .demand],
        "cancellingCancelsTheTaskAndIsSilent": [.normal, .demand, .cancel],
        "aRefusedConnectionIsAFailure": [.normal, .demand],
        "subscribersAreReleasedAtTheEndAndOnCancellation": [.normal, .demand, .cancel, .lifecycle],
        "stopsTheProgramOnARequestForNothing": [.normal, .demand],
      ]),
    Coverage(
      "Publishers.DispatchTimer", in: "DispatchTimerTests",
      [
        "theExampleDoesWhatItSays": [.normal, .demand],
        "keepsItsConfiguration": [.normal, .demand],
        "finishesAfterItsTimesHoweverTheyAreAskedFor": [.normal, .demand, .finish],
        "ticksNoMoreThanAskedFor": [.normal, .demand, .cancel],
        "ticksThatAreSkippedAreNotCounted": [.normal, .demand, .finish, .cancel],
        "noTimesAtAllFinishAtOnce": [.normal, .finish],
        "isSilentAfterCancellationAndReleasesTheSubscriber": [.normal, .demand, .cancel, .lifecycle],
        "stopsTheProgramOnARequestForNothing": [.normal, .demand],
      ]),
    Coverage(
      "Effect", in: "EffectTests",
      [
        "worksWhenItIsRunAndEachTimeItIs": [.normal, .finish, .immediate],
        "aFutureMayFail": .failure,
        "isThePublisherItWasMadeOf": [.normal, .demand, .cancel],
        "mapsItsValues": [.normal, .finish],
        "mergedEffectsRunAtTheSameTime": [.normal, .finish],
        "concatenatedEffectsRunOneAfterTheOther": [.normal, .finish, .failure],
        "isOrderly": .orderly,
        "isEndedByItsId": [.normal, .demand, .finish, .cancel],
        "allWithTheIdAreEndedInTheOrderInWhichTheyBegan": [.normal, .cancel, .reentrancy],
        "idsAreOfOneScope": [.finish, .cancel],
        "endsThoseInFlightIfToldTo": [.normal, .demand, .finish, .cancel],
        "isForgottenAtTheEnd": [.finish, .failure, .cancel],
        "endedFromWithinAValueItFinishesAfterTheValue": [.normal, .finish, .cancel, .reentrancy],
        "endedBeforeItsSourceHasAnsweredItFinishesAndCancelsTheSourceThen": [.finish, .cancel],
        "composedEffectsHandOnTheirScope": [.demand, .cancel],
        "releasesEverything": [.finish, .failure, .cancel, .lifecycle],
        "runsAfterTheTimeWithoutAnother": [.normal, .finish],
        "isEndedByItsIdWhileItWaits": [.finish, .cancel],
        "isEndedByItsIdWhileItRuns": [.normal, .demand, .finish, .cancel],
      ]),
    Coverage(
      "Store", in: "StoreTests",
      [
        "publishesTheStateAfterEachAction": [.normal, .cancel, .immediate],
        "whatASubscriberToTheStateSendsComesNext": [.cancel, .immediate],
        "aSocketStaysOpenUntilItIsClosedById": .cancel,
        "anEffectThatEndsItselfByIdIsNotKept": .cancel,
        "idsInTwoStoresAreDifferentUnlessTheyShareAScope": .cancel,
        "cancelsItsEffectsWhenReleased": .lifecycle,
        "actionsFromManyThreadsAreWorkedOffOneAtATime": .race,
        "endingByIdRacesWithValuesAndNothingIsKept": [.cancel, .race],
      ]),
  ]
}
