/* What answers, one function for each route: see the table in route.c and openapi.json. */
#ifndef SERVE_ROUTES_H
#define SERVE_ROUTES_H

#include "request.h"

/* look.c: what only reads */
void look_stores(struct request *request);
void look_doctor(struct request *request);
void look_locks(struct request *request);
void look_lock(struct request *request);
void look_ready(struct request *request);

/* events.c, bid.c */
void events_start(struct request *request);
void bid_start(struct request *request);

/* history.c */
void history_read(struct request *request);

/* change.c */
void change_renew(struct request *request);
void change_release(struct request *request);
void change_break(struct request *request);
void change_check(struct request *request);

/* assets.c: what stands in this program */
void asset_page(struct request *request);
void asset_file(struct request *request);
void asset_openapi(struct request *request);
void asset_health(struct request *request);

/* measure.c */
void measure_metrics(struct request *request);

#endif
