"""The studio: a page on which anyone types a sentence and watches the drone think and fly."""
