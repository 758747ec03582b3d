-- Unknown kinds of records are counted, their fields no longer.
DROP TABLE thread_unknown_fields;
